/** The state of a workflow; REST says `pending` for `draft`. */
export type WorkflowStatus = "draft" | "running" | "completed" | "failed";

export interface Workflow {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly status: WorkflowStatus;
  /** The payload as the client sent it; absent in lists. */
  readonly encryptedData: string;
  readonly agentId: string;
  readonly allowPublic: boolean;
  /** Sorted, without duplicates. */
  readonly requiredCapabilities: readonly string[];
  readonly createdUs: number;
  readonly updatedUs: number;
}

/** What the executions of a workflow add up to. */
export interface WorkflowRuns {
  /** Active executions that were granted at least once. */
  readonly started: number;
  /** Active executions that were never granted. */
  readonly waiting: number;
  /** How the last to end of those ever granted ended; null while there is none. */
  readonly lastOutcome: "completed" | "failed" | null;
}

/** The status of a workflow: the first line that is true. */
export function workflowStatus({ started, waiting, lastOutcome }: WorkflowRuns): WorkflowStatus {
  if (started > 0) return "running";
  if (waiting > 0) return "draft";
  return lastOutcome ?? "draft";
}

/** Sorts a set of capabilities and drops what is named twice. */
export function capabilitySet(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}
