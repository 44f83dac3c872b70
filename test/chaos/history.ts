/** What callers saw, by the monotonic clock of the runner, in milliseconds. */
export interface History {
  readonly tried: Tried[];
  readonly accepted: Accepted[];
  readonly seen: Seen[];
  readonly granted: Granted[];
  readonly reported: Reported[];
  readonly cancels: Cancel[];
  /** The end of the history: each accepted execution as it is when all is over. */
  readonly final: Map<string, Seen | "missing">;
  /** By workflow: how many executions it has in the end, and its status. */
  readonly workflows: Map<string, { readonly total: number; readonly status: string }>;
  /** Answers that nobody may get, e.g. INTERNAL_ERROR. */
  readonly faults: string[];
}

/** A caller wants an execution, and repeats the call with this key until it is answered. */
export interface Tried {
  readonly key: string;
  readonly workflowId: string;
  readonly atMostOnce: boolean;
  readonly maxAttempts: number;
  /** Service seconds. */
  readonly timeoutS: number;
  readonly startTimeoutS: number;
}

export interface Accepted {
  readonly key: string;
  readonly executionId: string;
  readonly sentMs: number;
  readonly answeredMs: number;
}

export interface Seen {
  readonly executionId: string;
  readonly status: string;
  /** The token that its output names; empty without one. */
  readonly output: string;
  /** JSON text. */
  readonly error: string;
  readonly attempt: number;
  /** From its creation to its end, by the server's clock; null before the end. */
  readonly lifeMs: number | null;
  readonly sentMs: number;
  readonly answeredMs: number;
}

/** An agent was handed a task. A repeated poll may hand over the same grant again. */
export interface Granted {
  readonly executionId: string;
  readonly attempt: number;
  readonly token: string;
  readonly agentId: string;
  readonly answeredMs: number;
}

export type Verb = "complete" | "fail" | "release";

/** One sending of a report. */
export interface Reported {
  readonly executionId: string;
  readonly token: string;
  readonly verb: Verb;
  /** A failure after which no attempt makes sense. */
  readonly isFinal: boolean;
  readonly sentMs: number;
  readonly answeredMs: number;
  /** `ok`, the reason of the refusal, or `unknown`. */
  readonly answer: string;
}

export interface Cancel {
  readonly executionId: string;
  /** The status it answered. */
  readonly status: string;
  readonly answeredMs: number;
}

export function newHistory(): History {
  return {
    tried: [],
    accepted: [],
    seen: [],
    granted: [],
    reported: [],
    cancels: [],
    final: new Map(),
    workflows: new Map(),
    faults: [],
  };
}

export function hasEnded(status: string): boolean {
  return status !== "pending" && status !== "running";
}
