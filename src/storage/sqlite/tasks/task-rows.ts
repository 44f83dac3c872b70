import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { bound } from "../bound.ts";
import { taskGrant, taskReport, workflow, workflowPayload } from "../schema.ts";

export type TaskRows = ReturnType<typeof createTaskRows>;
export type TaskVerb = typeof taskReport.$inferSelect.verb;

const p = sql.placeholder;

/** The statements of the agents' side that are not about the execution itself. Prepared once. */
export function createTaskRows(db: BetterSQLite3Database) {
  return {
    ...grantStatements(db),
    ...reportStatements(db),
    /** What a workflow gives the agent that runs it. */
    payload: db
      .select({
        name: workflow.name,
        encryptedData: workflowPayload.encryptedData,
        sealedKey: workflowPayload.sealedKey,
      })
      .from(workflow)
      .innerJoin(workflowPayload, sql`${workflowPayload.workflowId} = ${workflow.id}`)
      .where(sql`${workflow.id} = ${bound("id")}`)
      .prepare(),
  };
}

function grantStatements(db: BetterSQLite3Database) {
  return {
    insertGrant: db
      .insert(taskGrant)
      .values({
        executionId: p("executionId"),
        attempt: p("attempt"),
        agentOwner: p("agentOwner"),
        agentId: p("agentId"),
        keyReleased: p("keyReleased"),
        grantedUs: p("grantedUs"),
      })
      .prepare(),
    grantTo: db
      .select({ attempt: taskGrant.attempt })
      .from(taskGrant)
      .where(sql`${taskGrant.executionId} = ${bound("executionId")}
        AND ${taskGrant.agentOwner} = ${bound("agentOwner")}
        AND ${taskGrant.agentId} = ${bound("agentId")} LIMIT 1`)
      .prepare(),
  };
}

function reportStatements(db: BetterSQLite3Database) {
  return {
    insertReport: db
      .insert(taskReport)
      .values({
        executionId: p("executionId"),
        leaseToken: p("leaseToken"),
        verb: p("verb"),
        agentOwner: p("agentOwner"),
        agentId: p("agentId"),
      })
      .prepare(),
    report: db
      .select({
        verb: taskReport.verb,
        agentOwner: taskReport.agentOwner,
        agentId: taskReport.agentId,
      })
      .from(taskReport)
      .where(sql`${taskReport.executionId} = ${bound("executionId")}
        AND ${taskReport.leaseToken} = ${bound("leaseToken")}`)
      .prepare(),
  };
}
