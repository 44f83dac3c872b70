import { limits, spans } from "./limits.ts";

/** The state of an execution; REST says `pending` for `queued`. */
export type ExecutionStatus =
  | "queued"
  | "running"
  | "completed"
  | "failed"
  | "cancelled"
  | "timed_out";

/** What ended an execution without a result. */
export type ExecutionFailure =
  | "AGENT_ERROR"
  | "AGENT_LOST"
  | "OUTCOME_UNKNOWN"
  | "SCHEDULE_TO_START"
  | "EXECUTION";

export interface ExecutionError {
  readonly failure: ExecutionFailure;
  readonly code: string;
  readonly message: string;
}

export interface KeyRelease {
  readonly agentId: string;
  readonly attempt: number;
  readonly timeUs: number;
}

export interface Execution {
  readonly id: string;
  /** Empty for a call of an agent. */
  readonly workflowId: string;
  /** The latest attempt's agent; before the first, the named one; else empty. */
  readonly agentId: string;
  readonly status: ExecutionStatus;
  /** JSON text; set when completed, absent in lists. */
  readonly output: string;
  readonly error: ExecutionError | null;
  readonly attempt: number;
  /** Absent in lists. */
  readonly progress: string;
  /** Absent in lists. */
  readonly keyReleases: readonly KeyRelease[];
  readonly createdUs: number;
  readonly startedUs: number | null;
  readonly finishedUs: number | null;
}

/** An execution as the agent that holds it sees it. Spans are counted from the answer. */
export interface Task {
  readonly id: string;
  readonly workflowId: string;
  readonly attempt: number;
  readonly leaseToken: string;
  readonly leaseUs: number;
  readonly timeLeftUs: number;
  readonly name: string;
  readonly input: string;
  readonly encryptedData: string;
  readonly encryptionKey: string;
  readonly progress: string;
}

/** What an agent reports of a task that failed. */
export interface TaskFailure {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  /** The pause before the next attempt; absent: doubling, with jitter. */
  readonly retryAfterUs?: number;
}

export function hasEnded(status: ExecutionStatus): boolean {
  return status !== "queued" && status !== "running";
}

/** How an ended execution counts for its workflow. */
export function outcomeOf(status: ExecutionStatus): "completed" | "failed" {
  return status === "completed" ? "completed" : "failed";
}

/** The execution's own words for the failures that no agent reports. */
export const failureMessages = {
  AGENT_ERROR: "The agent reported a failure",
  AGENT_LOST: `The lease ran out ${limits.lossesMax} times: the agents died or sent no heartbeat`,
  OUTCOME_UNKNOWN:
    "The lease ran out. The work may have been done or not: look before running it again",
  SCHEDULE_TO_START: "Task timed out",
  EXECUTION: "Task timed out",
} as const satisfies Record<ExecutionFailure, string>;

/** The pause before attempt number `failures + 1`: 1 s doubling to 60 s, with full jitter. */
export function retryPauseUs(failures: number, random: number): number {
  const ceiling = Math.min(spans.retryMaxUs, spans.retryFirstUs * 2 ** Math.max(0, failures - 1));
  return Math.floor(ceiling * random);
}

/**
 * Where an execution waits: one line for a named agent, one for each set of required
 * capabilities. A poll looks into the lines that its agent may take from, and nowhere else.
 */
export function routeOf(agentId: string, requiredCapabilities: readonly string[]): string {
  return agentId === "" ? `c:${requiredCapabilities.join(",")}` : `a:${agentId}`;
}

/** The agent that a line was named for; empty for a line of capabilities. */
export function agentOfRoute(route: string): string {
  return route.startsWith("a:") ? route.slice(2) : "";
}

/** The capabilities that a line asks for; none for the line of a named agent. */
export function capabilitiesOfRoute(route: string): readonly string[] {
  return route.startsWith("a:") || route === "c:" ? [] : route.slice(2).split(",");
}

/** Whether an agent may take what waits in a line of its owner. */
export function mayTake(
  route: string,
  agentId: string,
  capabilities: ReadonlySet<string>,
): boolean {
  if (route.startsWith("a:")) return route === `a:${agentId}`;
  return capabilitiesOfRoute(route).every((name) => capabilities.has(name));
}
