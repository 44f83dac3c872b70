import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import {
  agentOfRoute,
  type Execution,
  type ExecutionError,
  failureMessages,
  type KeyRelease,
} from "../../../domain/execution.ts";
import { bound, firstBy } from "../bound.ts";
import { execution, taskGrant } from "../schema.ts";

export type ExecutionRow = typeof execution.$inferSelect;
export type ExecutionRows = ReturnType<typeof createExecutionRows>;

/** What of an execution lies apart from its row. */
export interface ExecutionParts {
  readonly output: string;
  readonly progress: string;
  /** The agent's own words for a failure; empty when it had none. */
  readonly errorText: string;
  readonly keyReleases: readonly KeyRelease[];
}

/** The statements that find executions, prepared once. */
export function createExecutionRows(db: BetterSQLite3Database) {
  return { ...findStatements(db), ...pageStatement(db), ...activeStatements(db) };
}

export function toExecution(row: ExecutionRow, parts: ExecutionParts): Execution {
  return {
    id: row.id,
    workflowId: row.workflowId,
    agentId: row.agentId === "" ? agentOfRoute(row.route) : row.agentId,
    status: row.status,
    output: parts.output,
    error: toError(row, parts.errorText),
    attempt: row.attempt,
    progress: parts.progress,
    keyReleases: parts.keyReleases,
    createdUs: row.createdUs,
    startedUs: row.startedUs,
    finishedUs: row.finishedUs,
  };
}

function toError(row: ExecutionRow, errorText: string): ExecutionError | null {
  const { failure, errorCode } = row;
  if (failure === null) return null;
  return {
    failure,
    code: errorCode,
    message: errorText === "" ? failureMessages[failure] : errorText,
  };
}

function findStatements(db: BetterSQLite3Database) {
  return {
    /** Whoever owns it: for the agent's side and the sweeper. */
    find: db
      .select()
      .from(execution)
      .where(sql`${execution.id} = ${bound("id")}`)
      .prepare(),
    findOwn: db
      .select()
      .from(execution)
      .where(sql`${execution.id} = ${bound("id")} AND ${execution.owner} = ${bound("owner")}`)
      .prepare(),
    keyReleases: db
      .select({
        agentId: taskGrant.agentId,
        attempt: taskGrant.attempt,
        timeUs: taskGrant.grantedUs,
      })
      .from(taskGrant)
      .where(sql`${taskGrant.executionId} = ${bound("id")} AND ${taskGrant.keyReleased} = 1`)
      .orderBy(taskGrant.grantedUs)
      .prepare(),
  };
}

/** The key as a row value: only so is the whole of it searched in the index. */
function pageStatement(db: BetterSQLite3Database) {
  const isOlder = sql`(${execution.createdUs}, ${execution.id}) < (${bound("createdUs")}, ${bound("id")})`;
  return {
    page: db
      .select()
      .from(execution)
      .where(sql`${execution.workflowId} = ${bound("workflowId")} AND ${isOlder}`)
      .orderBy(firstBy(sql`${execution.createdUs} DESC, ${execution.id} DESC`))
      .prepare(),
  };
}

function activeStatements(db: BetterSQLite3Database) {
  const isHeldBy = sql`${execution.agentOwner} = ${bound("agentOwner")}
    AND ${execution.agentId} = ${bound("agentId")} AND ${execution.status} = 'running'`;
  return {
    activeOf: db
      .select()
      .from(execution)
      .where(
        sql`${execution.workflowId} = ${bound("workflowId")} AND ${execution.wakeUs} IS NOT NULL`,
      )
      .prepare(),
    heldBy: db.select().from(execution).where(isHeldBy).prepare(),
    /** Grants of one poll that no clock has ended, in the order in which they were due. */
    heldOfPoll: db
      .select()
      .from(execution)
      .where(sql`${isHeldBy} AND ${execution.pollId} = ${bound("pollId")}
        AND ${execution.wakeUs} > ${bound("nowUs")}`)
      .orderBy(execution.dueUs, execution.id)
      .prepare(),
    /** What the sweeper must look at, the longest overdue first. */
    due: db
      .select({ id: execution.id })
      .from(execution)
      .where(sql`${execution.wakeUs} <= ${bound("nowUs")}`)
      .orderBy(firstBy(sql`${execution.wakeUs}`))
      .prepare(),
    // The condition that is always true makes it a seek into the index.
    nextWake: db
      .select({ wakeUs: execution.wakeUs })
      .from(execution)
      .where(sql`${execution.wakeUs} >= 0`)
      .orderBy(sql`${execution.wakeUs} LIMIT 1`)
      .prepare(),
  };
}
