import type {
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Clock } from "../domain/clock.ts";
import type { Group } from "../domain/groups.ts";
import type { Store } from "../storage/port.ts";
import type { Wakeups } from "./wakeups.ts";

/** One call as a handler sees it, whichever door it came through. */
export interface Call {
  readonly owner: string;
  readonly agentId: string;
  /** Aborts when the caller has left or its deadline has passed. */
  readonly signal: AbortSignal;
  /** What is left until the caller's deadline; undefined when there is none. */
  timeLeftMs(): number | undefined;
  /** From the header or metadata `idempotency-key`; empty when absent. */
  readonly idempotencyKey: string;
  /** Throws FORBIDDEN when the token's scope does not cover the group. */
  requireGroup(group: Group): void;
  /** Throws FORBIDDEN when the token is bound to another agent. */
  requireAgent(agentId: string): void;
  /** Calls back once when the token expires or is revoked. */
  onTokenEnd(tell: (reason: "expired" | "revoked") => void): Disposable;
  /** What the answer cannot say itself, for doors whose status can. */
  readonly outcome: Outcome;
}

export interface Outcome {
  /** Something was made: 201 rather than 200. */
  created?: boolean;
  /** The execution has ended: 200 rather than 202. */
  ended?: boolean;
  /** How long the call waited for something to happen: no sign of slowness. */
  waitedMs: number;
}

/** What the services are made of. */
export interface ServiceParts {
  readonly store: Store;
  readonly wakeups: Wakeups;
  readonly clock: Clock;
  /** A new id that sorts by its time, e.g. `wf_01…`. */
  newId(prefix: "wf" | "ex"): string;
  /** 0 to 1. */
  random(): number;
  /** Aborts when the server begins to stop. */
  readonly stopping: AbortSignal;
}

/** Messages of a stream that are there at once, at least one; each goes out on its own. */
export type Burst<T> = readonly T[];

export type Handler<M extends DescMethod> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => Promise<MessageInitShape<O>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, call: Call) => AsyncIterable<Burst<MessageInitShape<O>>>
      : never;

/** Every rpc of a service; a forgotten one does not compile. */
export type Handlers<S extends DescService> = { [K in keyof S["method"]]: Handler<S["method"][K]> };
