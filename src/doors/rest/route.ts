import {
  create,
  type DescMethod,
  type DescMethodServerStreaming,
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
  /** The `Last-Event-ID` of whoever goes on with an event stream; absent and empty are alike. */
  readonly lastEventId: string | undefined;
}

export interface Told {
  readonly status: number;
  /** Absent: no content. */
  readonly body?: View;
  readonly location?: string;
}

/** One event of an event stream. */
export interface ServerEvent {
  /** One word. */
  readonly event: string;
  /** What `Last-Event-ID` says to go on after this event. Absent: as of the event before. */
  readonly id?: string;
  readonly data: View;
}

/** One row of the table: a path, its rpc, and the two translations. */
export type Route = AnswerRoute | StreamRoute;

interface Row {
  readonly verb: Verb;
  /** The segments below `/api/v1`; a name begins with a colon. */
  readonly segments: readonly string[];
  readonly path: string;
  readonly method: DescMethod;
  ask(asked: Asked): Message;
}

/** A row that is answered once. */
export interface AnswerRoute extends Row {
  readonly kind: "answer";
  tell(answer: Message, context: { readonly request: Message; readonly outcome: Outcome }): Told;
}

/** A row that is answered by an event stream. */
export interface StreamRoute extends Row {
  readonly kind: "stream";
  tellEach(message: Message): ServerEvent;
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

type Ask<M extends DescMethod, P extends string> = (
  asked: Asked<ParamsOf<P>>,
) => Loose<MessageInitShape<M["input"]>>;

interface Translations<M extends DescMethodUnary, P extends string> {
  readonly ask: Ask<M, P>;
  tell(
    answer: MessageShape<M["output"]>,
    context: { readonly request: MessageShape<M["input"]>; readonly outcome: Outcome },
  ): Told;
}

interface StreamTranslations<M extends DescMethodServerStreaming, P extends string> {
  readonly ask: Ask<M, P>;
  tellEach(message: MessageShape<M["output"]>): ServerEvent;
}

/** A row. The casts in this file tie the two translations to their rpc; nowhere else. */
export function route<const P extends string, M extends DescMethodUnary>(
  at: `${Verb} ${P}`,
  method: M,
  { ask, tell }: Translations<M, P>,
): AnswerRoute {
  return {
    ...row(at, method, ask),
    kind: "answer",
    tell: (answer, context) =>
      tell(create(method.output, answer as never) as never, context as never),
  };
}

/** A row whose rpc is a stream. */
export function streamRoute<const P extends string, M extends DescMethodServerStreaming>(
  at: `${Verb} ${P}`,
  method: M,
  { ask, tellEach }: StreamTranslations<M, P>,
): StreamRoute {
  return {
    ...row(at, method, ask),
    kind: "stream",
    tellEach: (message) => tellEach(create(method.output, message as never) as never),
  };
}

function row<P extends string, M extends DescMethod>(
  at: `${Verb} ${P}`,
  method: M,
  ask: Ask<M, P>,
): Row {
  const [verb, path] = at.split(" ") as [Verb, string];
  return {
    verb,
    path,
    segments: path.split("/").slice(1),
    method,
    ask: (asked) => create(method.input, ask(asked as Asked<ParamsOf<P>>) as never),
  };
}

export const ok = (body: View): Told => ({ status: 200, body });
export const noContent = (): Told => ({ status: 204 });
