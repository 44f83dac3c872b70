import type { AbortWhy } from "./agent-task.ts";

/** Which task an event is about. */
interface OfTask {
  readonly taskId: string;
  readonly attempt: number;
}

interface Ended extends OfTask {
  /** From its grant to the answer to its report. */
  readonly elapsedMs: number;
}

/** How a task ended. */
export type TaskEnd =
  | { readonly kind: "completed" }
  /** `error` is what the handler threw; the server got `code` and `message`. */
  | {
      readonly kind: "failed";
      readonly code: string;
      readonly message: string;
      readonly error: unknown;
    }
  /** Its owner wanted it to end, and it did. */
  | { readonly kind: "cancelled" }
  /** Given back. */
  | { readonly kind: "released" }
  /** The attempt was over first, or its report could not be delivered (`error` says why). */
  | { readonly kind: "lost"; readonly error?: unknown };

/**
 * What an agent does. Each `granted` is followed by one of `completed`, `failed`, `cancelled`,
 * `released` and `lost`, perhaps with `stopping` between.
 */
export type AgentEvent =
  | { readonly kind: "registered"; readonly again: boolean }
  | ({
      readonly kind: "granted";
      readonly workflowId: string | undefined;
      readonly name: string | undefined;
    } & OfTask)
  /** The handler was told to stop. */
  | ({ readonly kind: "stopping"; readonly why: AbortWhy } & OfTask)
  | (TaskEnd & Ended)
  /** A call failed and is sent again after a pause. */
  | {
      readonly kind: "retrying";
      readonly call: "register" | "poll" | "heartbeat" | "report";
      readonly error: unknown;
      readonly delayMs: number;
    }
  /** No more tasks are taken; `held` are left. */
  | { readonly kind: "draining"; readonly held: number };
