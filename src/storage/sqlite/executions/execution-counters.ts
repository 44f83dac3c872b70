import type { CounterKey } from "../ledger.ts";

/** Counts the executions of an owner that wait. */
export function queuedCounter(owner: string): CounterKey {
  return { owner, kind: "queued", status: "" };
}

/** Counts the executions of a workflow, ended ones too. */
export function executionCounter(owner: string, workflowId: string): CounterKey {
  return { owner, kind: `execution:${workflowId}`, status: "" };
}
