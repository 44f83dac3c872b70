import { sql } from "drizzle-orm";
import { type WorkflowRuns, workflowStatus } from "../../../domain/workflow.ts";
import { bound } from "../bound.ts";
import type { SqliteContext } from "../context.ts";
import type { Touches } from "../ledger.ts";
import { requireOne } from "../require-one.ts";
import { workflow } from "../schema.ts";
import { workflowCounter } from "./workflow-edits.ts";

/** What one move of an execution changes for its workflow. */
export interface RunsChange {
  readonly started?: number;
  readonly waiting?: number;
  readonly lastOutcome?: "completed" | "failed";
}

/** Keeps a workflow's status in step with its executions. Only to be used inside a write. */
export interface WorkflowRunsBook {
  /** Does nothing for a call of an agent, which has no workflow. */
  note(workflowId: string, change: RunsChange, touches: Touches): void;
}

const p = sql.placeholder;
const isThis = sql`${workflow.id} = ${bound("id")}`;

export function createWorkflowRunsBook({ db, ledger, clock }: SqliteContext): WorkflowRunsBook {
  const find = db
    .select({
      owner: workflow.owner,
      status: workflow.status,
      started: workflow.runsStarted,
      waiting: workflow.runsWaiting,
      lastOutcome: workflow.lastOutcome,
    })
    .from(workflow)
    .where(isThis)
    .prepare();
  const writeRuns = db
    .update(workflow)
    .set({
      runsStarted: sql`${workflow.runsStarted} + ${p("started")}`,
      runsWaiting: sql`${workflow.runsWaiting} + ${p("waiting")}`,
      lastOutcome: sql`coalesce(${p("lastOutcome")}, ${workflow.lastOutcome})`,
    })
    .where(isThis)
    .prepare();
  const writeStatus = db
    .update(workflow)
    .set({
      status: sql`${p("status")}`,
      updatedUs: sql`${p("nowUs")}`,
      seq: sql`${p("seq")}`,
    })
    .where(sql`${isThis} AND ${workflow.status} = ${bound("from")}`)
    .prepare();

  return {
    note(id, change, touches) {
      if (id === "") return;
      const row = find.get({ id });
      if (row === undefined) throw new Error(`an active execution without its workflow ${id}`);
      const { owner, status: from } = row;
      const { started = 0, waiting = 0, lastOutcome = null } = change;
      requireOne(writeRuns.run({ id, started, waiting, lastOutcome }));
      const status = workflowStatus(addRuns(row, change));
      if (status === from) return;
      const nowUs = clock.wallUs();
      requireOne(writeStatus.run({ id, from, status, nowUs, seq: ledger.nextSeq(owner) }));
      ledger.count({ owner, kind: workflowCounter, status: from }, -1);
      ledger.count({ owner, kind: workflowCounter, status }, 1);
      touches.feed(owner);
    },
  };
}

function addRuns(runs: WorkflowRuns, change: RunsChange): WorkflowRuns {
  return {
    started: runs.started + (change.started ?? 0),
    waiting: runs.waiting + (change.waiting ?? 0),
    lastOutcome: change.lastOutcome ?? runs.lastOutcome,
  };
}
