import { eq, sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { spans } from "../../domain/limits.ts";
import type { Store } from "../port.ts";
import type { SqliteContext } from "./context.ts";
import { executionCounter } from "./executions/execution-counters.ts";
import {
  counter,
  execution,
  executionContent,
  request,
  syncMutation,
  taskGrant,
  taskReport,
  workflow,
  workflowPayload,
} from "./schema.ts";

const p = sql.placeholder;
const isCounter = sql`${counter.owner} = ${p("owner")} AND ${counter.kind} = ${p("kind")}
  AND ${counter.status} = ${p("status")}`;

/** `executionKeptUs`: how long an execution is kept after its end. */
export function createPrune(context: SqliteContext, executionKeptUs: number): Store["prune"] {
  const { db, writer, clock } = context;
  const old = createOldRows(db);
  const eraseExecution = createExecutionEraser(db);
  const eraseWorkflow = createWorkflowEraser(db);

  return (limit) =>
    writer.write(() => {
      const nowUs = clock.wallUs();
      const atMost = { limit: limit + 1 };
      const executions = old.executions.all({ beforeUs: nowUs - executionKeptUs, ...atMost });
      const workflows = old.workflows.all({ beforeUs: nowUs - spans.deletedKeptUs, ...atMost });
      const mutations = old.mutations.all({ beforeUs: nowUs - spans.mutationKeptUs, ...atMost });
      executions.slice(0, limit).forEach(eraseExecution);
      workflows.slice(0, limit).forEach(eraseWorkflow);
      for (const { rowid } of mutations.slice(0, limit)) old.eraseMutation.run({ rowid });
      return { hasMore: [executions, workflows, mutations].some((rows) => rows.length > limit) };
    });
}

function createOldRows(db: BetterSQLite3Database) {
  const rowid = sql<number>`rowid`;
  return {
    executions: db
      .select({ id: execution.id, owner: execution.owner, workflowId: execution.workflowId })
      .from(execution)
      .where(sql`${execution.finishedUs} < ${p("beforeUs")}`)
      .limit(p("limit"))
      .prepare(),
    workflows: db
      .select({ id: workflow.id, owner: workflow.owner })
      .from(workflow)
      .where(sql`${workflow.deletedUs} < ${p("beforeUs")}`)
      .limit(p("limit"))
      .prepare(),
    mutations: db
      .select({ rowid })
      .from(syncMutation)
      .where(sql`${syncMutation.acceptedUs} < ${p("beforeUs")}`)
      .limit(p("limit"))
      .prepare(),
    eraseMutation: db
      .delete(syncMutation)
      .where(sql`${rowid} = ${p("rowid")}`)
      .prepare(),
  };
}

/** An execution leaves nothing, not even in the feed. */
function createExecutionEraser(db: BetterSQLite3Database) {
  const id = p("id");
  const children = [
    db.delete(executionContent).where(eq(executionContent.executionId, id)).prepare(),
    db.delete(taskReport).where(eq(taskReport.executionId, id)).prepare(),
    db.delete(taskGrant).where(eq(taskGrant.executionId, id)).prepare(),
    db.delete(request).where(eq(request.objectId, id)).prepare(),
    db.delete(execution).where(eq(execution.id, id)).prepare(),
  ];
  // Changes the counter where there is one: that of a swept workflow is gone.
  const uncount = db
    .update(counter)
    .set({ n: sql`${counter.n} - 1` })
    .where(isCounter)
    .prepare();
  return (swept: { readonly id: string; readonly owner: string; readonly workflowId: string }) => {
    for (const statement of children) statement.run({ id: swept.id });
    uncount.run({ ...executionCounter(swept.owner, swept.workflowId) });
  };
}

function createWorkflowEraser(db: BetterSQLite3Database) {
  const id = p("id");
  const rows = [
    db.delete(workflowPayload).where(eq(workflowPayload.workflowId, id)).prepare(),
    db.delete(request).where(eq(request.objectId, id)).prepare(),
    db.delete(workflow).where(eq(workflow.id, id)).prepare(),
  ];
  const dropCounter = db.delete(counter).where(isCounter).prepare();
  return (swept: { readonly id: string; readonly owner: string }) => {
    for (const statement of rows) statement.run({ id: swept.id });
    dropCounter.run({ ...executionCounter(swept.owner, swept.id) });
  };
}
