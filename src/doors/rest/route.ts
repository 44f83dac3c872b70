import {
  create,
  type DescMethod,
  type DescMethodUnary,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Outcome } from "../../services/call.ts";
import type { Fields } from "./fields.ts";
import type { View } from "./views.ts";

export type Verb = "GET" | "POST" | "PATCH" | "DELETE";

/** What a request says: the names in its path, its query, its body. */
export interface Asked<P extends string = string> {
  readonly params: Readonly<Record<P, string>>;
  readonly query: Fields;
  readonly body: Fields;
  /** What `Prefer` asks for, RFC 7240: a wait, in seconds. */
  readonly preferredWait: { readonly seconds: bigint; readonly nanos: number } | undefined;
}

export interface Told {
  readonly status: number;
  /** Absent: no content. */
  readonly body?: View;
  readonly location?: string;
}

/** One row of the table: a path, its rpc, and the two translations. */
export interface Route {
  readonly verb: Verb;
  /** The segments below `/api/v1`; a name begins with a colon. */
  readonly segments: readonly string[];
  readonly path: string;
  readonly method: DescMethod;
  ask(asked: Asked): Message;
  tell(answer: Message, context: { readonly request: Message; readonly outcome: Outcome }): Told;
}

type ParamsOf<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamsOf<`/${Rest}`>
  : P extends `${string}:${infer Name}`
    ? Name
    : never;

/** As an initialiser, but what was not sent may stand there as undefined, at every depth. */
type Loose<T> = T extends readonly (infer Item)[]
  ? Loose<Item>[]
  : T extends object
    ? { [K in keyof T]?: Loose<T[K]> | undefined }
    : T;

interface Translations<M extends DescMethodUnary, P extends string> {
  ask(asked: Asked<ParamsOf<P>>): Loose<MessageInitShape<M["input"]>>;
  tell(
    answer: MessageShape<M["output"]>,
    context: { readonly request: MessageShape<M["input"]>; readonly outcome: Outcome },
  ): Told;
}

/** A row. The casts here tie the two translations to their rpc; nowhere else. */
export function route<const P extends string, M extends DescMethodUnary>(
  at: `${Verb} ${P}`,
  method: M,
  { ask, tell }: Translations<M, P>,
): Route {
  const [verb, path] = at.split(" ") as [Verb, string];
  return {
    verb,
    path,
    segments: path.split("/").slice(1),
    method,
    ask: (asked) => create(method.input, ask(asked as Asked<ParamsOf<P>>) as never),
    tell: (answer, context) =>
      tell(create(method.output, answer as never) as never, context as never),
  };
}

export const ok = (body: View): Told => ({ status: 200, body });
export const noContent = (): Told => ({ status: 204 });
