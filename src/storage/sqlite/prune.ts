import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { spans } from "../../domain/limits.ts";
import type { Store } from "../port.ts";
import type { SqliteContext } from "./context.ts";
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

/** `executionKeptUs`: how long an execution is kept after its end. */
export function createPrune(context: SqliteContext, executionKeptUs: number): Store["prune"] {
  const { db, writer, clock, ledger } = context;
  const old = createOldRows(db);
  const pruneExecution = createExecutionEraser(context);
  const pruneWorkflow = createWorkflowEraser(db);

  return (limit) =>
    writer.write(() => {
      const nowUs = clock.wallUs();
      const executionsBeforeUs = nowUs - executionKeptUs;
      const workflowsBeforeUs = nowUs - spans.deletedKeptUs;
      const mutationsBeforeUs = nowUs - spans.mutationKeptUs;
      const executions = old.executions.all({ beforeUs: executionsBeforeUs, limit: limit + 1 });
      const workflows = old.workflows.all({ beforeUs: workflowsBeforeUs, limit: limit + 1 });
      for (const { id } of executions.slice(0, limit)) pruneExecution(id);
      for (const { id, owner } of workflows.slice(0, limit)) pruneWorkflow(owner, id);
      old.eraseMutations.run({ beforeUs: mutationsBeforeUs, limit });
      const hasMoreMutations = old.anyMutation.get({ beforeUs: mutationsBeforeUs }) !== undefined;
      return {
        hasMore: executions.length > limit || workflows.length > limit || hasMoreMutations,
      };
    });
}
