import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { bound } from "../bound.ts";
import { execution } from "../schema.ts";
import type { ExecutionRow } from "./execution-rows.ts";

export type MoveStatements = ReturnType<typeof createMoveStatements>;

const p = sql.placeholder;

/** A move happens from the status and lease it was decided on, or not at all. */
const isFrom = sql`${execution.id} = ${bound("id")} AND ${execution.status} = ${bound("from")}
  AND ${execution.leaseToken} = ${bound("fromToken")}`;

/** The moves of an execution, each one conditional update. Prepared once. */
export function createMoveStatements(db: BetterSQLite3Database) {
  return { insert: insertStatement(db), ...leaseStatements(db), ...leavingStatements(db) };
}

/** Where a move begins: the row as this same write has read it. */
export function fromOf({ id, status, leaseToken }: ExecutionRow) {
  return { id, from: status, fromToken: leaseToken };
}

function insertStatement(db: BetterSQLite3Database) {
  return db
    .insert(execution)
    .values({
      id: p("id"),
      owner: p("owner"),
      workflowId: p("workflowId"),
      routeOwner: p("routeOwner"),
      route: p("route"),
      status: "queued",
      dueUs: p("dueUs"),
      pauseUs: 0,
      wakeUs: p("startDeadlineUs"),
      attempt: 0,
      isNewAttempt: true,
      failures: 0,
      losses: 0,
      maxAttempts: p("maxAttempts"),
      atMostOnce: p("atMostOnce"),
      timeoutUs: p("timeoutUs"),
      startTimeoutUs: p("startTimeoutUs"),
      startDeadlineUs: p("startDeadlineUs"),
      agentOwner: "",
      agentId: "",
      pollId: "",
      leaseToken: "",
      leaseUs: 0,
      errorCode: "",
      createdUs: p("createdUs"),
      seq: p("seq"),
      changedUs: p("createdUs"),
    })
    .prepare();
}

function leaseStatements(db: BetterSQLite3Database) {
  return {
    grant: db
      .update(execution)
      .set({
        status: "running",
        wakeUs: sql`${p("wakeUs")}`,
        attempt: sql`${p("attempt")}`,
        deadlineUs: sql`${p("deadlineUs")}`,
        agentOwner: sql`${p("agentOwner")}`,
        agentId: sql`${p("agentId")}`,
        pollId: sql`${p("pollId")}`,
        leaseToken: sql`${p("leaseToken")}`,
        leaseUs: sql`${p("leaseUs")}`,
        leaseUntilUs: sql`${p("leaseUntilUs")}`,
        startedUs: sql`${p("startedUs")}`,
        seq: sql`${p("seq")}`,
        changedUs: sql`${p("changedUs")}`,
      })
      .where(isFrom)
      .prepare(),
    renew: db
      .update(execution)
      .set({
        status: "running",
        wakeUs: sql`${p("wakeUs")}`,
        losses: sql`${p("losses")}`,
        leaseUs: sql`${p("leaseUs")}`,
        leaseUntilUs: sql`${p("leaseUntilUs")}`,
      })
      .where(isFrom)
      .prepare(),
    askCancel: db
      .update(execution)
      .set({ wakeUs: sql`${p("wakeUs")}`, cancelUs: sql`${p("cancelUs")}` })
      .where(isFrom)
      .prepare(),
  };
}

function leavingStatements(db: BetterSQLite3Database) {
  return {
    queueAgain: db
      .update(execution)
      .set({
        status: "queued",
        dueUs: sql`${p("dueUs")}`,
        pauseUs: sql`${p("pauseUs")}`,
        wakeUs: sql`${p("wakeUs")}`,
        isNewAttempt: sql`${p("isNewAttempt")}`,
        failures: sql`${p("failures")}`,
        losses: sql`${p("losses")}`,
        leaseToken: sql`${p("leaseToken")}`,
        leaseUntilUs: null,
      })
      .where(isFrom)
      .prepare(),
    end: db
      .update(execution)
      .set({
        status: sql`${p("status")}`,
        wakeUs: null,
        leaseUntilUs: null,
        failure: sql`${p("failure")}`,
        errorCode: sql`${p("errorCode")}`,
        finishedUs: sql`${p("finishedUs")}`,
        seq: sql`${p("seq")}`,
        changedUs: sql`${p("finishedUs")}`,
      })
      .where(isFrom)
      .prepare(),
  };
}
