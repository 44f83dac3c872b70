import type { AgentName } from "../../../domain/agent.ts";
import type { ExecutionFailure, ExecutionStatus } from "../../../domain/execution.ts";
import type { SqliteContext } from "../context.ts";
import type { Touches } from "../ledger.ts";
import type { WorkflowRunsBook } from "../workflows/workflow-runs.ts";
import type { ExecutionRow } from "./execution-rows.ts";
import type { MoveStatements } from "./move-statements.ts";

/**
 * Every move of an execution: the update itself, the counters, the workflow's status and the feed,
 * and what is touched. `row` is the execution as this same write has read it; only to be used
 * inside a write.
 */
export interface Moves {
  /** Nothing -> queued. */
  queue(draft: NewExecution, touches: Touches): void;
  /** Queued -> running, under a new token. The row as it is then. */
  grant(row: ExecutionRow, lease: NewLease, touches: Touches): ExecutionRow;
  /** Running -> running; queued by a lost lease -> running, and the loss is taken back. */
  renew(row: ExecutionRow, leaseUs: number): void;
  /** Running, or queued by a lost lease, -> queued. */
  queueAgain(row: ExecutionRow, wait: NewWait, touches: Touches): void;
  /** Running -> running, with a grace at whose end it will be cancelled. */
  askCancel(row: ExecutionRow, touches: Touches): void;
  /** Active -> ended. */
  end(row: ExecutionRow, end: NewEnd, touches: Touches): void;
}

export interface NewExecution {
  readonly id: string;
  readonly owner: string;
  /** Empty for a call of an agent. */
  readonly workflowId: string;
  readonly line: { readonly owner: string; readonly route: string };
  readonly timeoutUs: number;
  readonly startTimeoutUs: number;
  readonly maxAttempts: number;
  readonly atMostOnce: boolean;
}

export interface NewLease {
  readonly agent: AgentName;
  readonly pollId: string;
  readonly leaseUs: number;
}

export interface NewWait {
  readonly pauseUs: number;
  readonly isNewAttempt: boolean;
  readonly failures: number;
  readonly losses: number;
  /** Whether the agent that held it may still report, until the next grant. */
  readonly keepsToken: boolean;
}

export interface NewEnd {
  readonly status: Exclude<ExecutionStatus, "queued" | "running">;
  readonly failure?: ExecutionFailure;
  /** Absent: the word of `failure`. */
  readonly errorCode?: string;
}

/** What the moves are made of. */
export interface MoveParts {
  readonly context: SqliteContext;
  readonly statements: MoveStatements;
  readonly book: WorkflowRunsBook;
}
