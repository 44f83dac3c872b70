/** A task as its handler sees it. */
export interface AgentTask<Input = unknown> {
  /** Also its execution's id, and steady over all attempts: an idempotency key towards others. */
  readonly id: string;
  /** Undefined for a call of the agent itself. */
  readonly workflowId: string | undefined;
  /** From 1. */
  readonly attempt: number;
  /** The workflow's name. */
  readonly name: string | undefined;
  /** The value of JSON that the caller gave, opened if the agent's key opens it. */
  readonly input: Input;
  /** What `encryptedData` held, if the agent's key opens it; else undefined. */
  readonly payload: unknown;
  /** The workflow's payload as it came. */
  readonly encryptedData: string | undefined;
  /**
   * The workflow's key as it came; nothing was opened with it. Its hand-over is on record; do not
   * store it.
   */
  readonly encryptionKey: string | undefined;
  /** What an earlier attempt reported last: a value of JSON, or else its text. */
  readonly progress: unknown;
  /** How long the execution may still take when the task was granted. */
  readonly timeLeftMs: number | undefined;
  /**
   * Stores progress for the owner to see and for the next attempt to go on from: text as it is, any
   * other value as JSON; sealed when the task was. Resolves once it is stored, or when the attempt
   * is over; never rejects. Leases are kept without it.
   * @throws RangeError above 32 KiB, or 23 KiB when it is to be sealed
   * @throws TypeError for what is no value of JSON
   */
  heartbeat(progress: unknown): Promise<void>;
}

/**
 * Does one task. What it returns is the output, any value of JSON; what it throws is a failure. It
 * has to stop when the signal is aborted: its `reason` is a TaskAbortedError. Throw that to give
 * up; a value that is returned all the same is still reported, as long as it counts.
 */
export type TaskHandler<Input = unknown> = (task: AgentTask<Input>, signal: AbortSignal) => unknown;

/**
 * Why a task is to stop.
 * - `lease_lost`: the attempt is over; another agent may be at it. Nothing it reports will count
 * - `cancel_requested`: the owner wants it to end; a result within 10 s still counts
 * - `draining`: the agent stops, and gives the task back
 */
export type AbortWhy = "lease_lost" | "cancel_requested" | "draining";

/** The reason of an aborted signal. */
export class TaskAbortedError extends Error {
  readonly why: AbortWhy;

  constructor(why: AbortWhy) {
    super(`The task is to stop: ${why}`);
    this.name = "TaskAbortedError";
    this.why = why;
  }
}

/** What a failure says beside its message. */
export interface TaskFailure {
  /** For programs: at most 64 of `A-Z a-z 0-9 . _ : / -`. Default `AGENT_ERROR`. */
  readonly code?: string;
  /** Whether another attempt makes sense. Default true. */
  readonly retryable?: boolean;
  /** The pause before the next attempt, in place of the service's own. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** Thrown by a handler to choose what its failure says. The message is shown to the owner. */
export class TaskFailedError extends Error {
  readonly failure: TaskFailure;

  constructor(message: string, failure: TaskFailure = {}) {
    super(message, failure.cause === undefined ? undefined : { cause: failure.cause });
    this.name = "TaskFailedError";
    this.failure = failure;
  }
}
