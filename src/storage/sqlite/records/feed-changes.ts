import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { agentOfRoute } from "../../../domain/execution.ts";
import { spans } from "../../../domain/limits.ts";
import type { ChangeKind, LifecycleChange } from "../../../domain/record.ts";
import type { FeedQuery } from "../../port.ts";
import { bound, firstBy } from "../bound.ts";
import type { SqliteContext } from "../context.ts";
import { agent, execution, workflow } from "../schema.ts";
import type { Line, Place } from "./feed-lines.ts";

/** One line for each kind of change that a query asks for. */
export function createChangeLines(
  context: SqliteContext,
): (owner: string, query: FeedQuery) => readonly Line[] {
  const looks = createLooks(context.db);
  return (owner, { after, kinds }) => {
    const toldFromUs = context.clock.wallUs() - spans.deletedKeptUs;
    return [...kinds].map((kind) => ({
      after,
      look: (from: number, limit: number) =>
        looks[kind]({ owner, after: from, limit }).map((change) => toPlace(change, toldFromUs)),
    }));
  };
}

interface Reach {
  readonly owner: string;
  readonly after: number;
  readonly limit: number;
}

/** The row of a deregistered agent stays for ever, but is told for a while only. */
function toPlace(change: LifecycleChange, toldFromUs: number): Place {
  const { id, workflowId, agentId } = change;
  return {
    seq: change.cursor,
    isWanted: !change.deleted || change.timeUs >= toldFromUs,
    dataBytes: 0,
    nameBytes: Buffer.byteLength(id + workflowId + agentId),
    change,
  };
}

function createLooks(db: BetterSQLite3Database) {
  const workflows = prepareWorkflows(db);
  const executions = prepareExecutions(db);
  const agents = prepareAgents(db);
  return {
    workflow: (reach) =>
      workflows.all({ ...reach }).map((row) => ({
        kind: "workflow",
        id: row.id,
        workflowId: "",
        agentId: "",
        status: row.deletedUs === null ? row.status : "",
        deleted: row.deletedUs !== null,
        cursor: row.seq,
        timeUs: row.deletedUs ?? row.updatedUs,
      })),
    execution: (reach) =>
      executions.all({ ...reach }).map((row) => ({
        kind: "execution",
        id: row.id,
        workflowId: row.workflowId,
        agentId: row.agentId === "" ? agentOfRoute(row.route) : row.agentId,
        status: row.status,
        deleted: false,
        cursor: row.seq,
        timeUs: row.changedUs,
      })),
    agent: (reach) =>
      agents.all({ ...reach }).map((row) => ({
        kind: "agent",
        id: row.id,
        workflowId: "",
        agentId: "",
        status: row.deletedUs === null ? row.status : "",
        deleted: row.deletedUs !== null,
        cursor: row.seq,
        timeUs: row.changedUs,
      })),
  } satisfies Record<ChangeKind, (reach: Reach) => readonly LifecycleChange[]>;
}

function prepareWorkflows(db: BetterSQLite3Database) {
  return db
    .select({
      id: workflow.id,
      status: workflow.status,
      updatedUs: workflow.updatedUs,
      deletedUs: workflow.deletedUs,
      seq: workflow.seq,
    })
    .from(workflow)
    .where(sql`${workflow.owner} = ${bound("owner")} AND ${workflow.seq} > ${bound("after")}`)
    .orderBy(firstBy(workflow.seq))
    .prepare();
}

function prepareExecutions(db: BetterSQLite3Database) {
  return db
    .select({
      id: execution.id,
      workflowId: execution.workflowId,
      agentId: execution.agentId,
      route: execution.route,
      status: execution.status,
      changedUs: execution.changedUs,
      seq: execution.seq,
    })
    .from(execution)
    .where(sql`${execution.owner} = ${bound("owner")} AND ${execution.seq} > ${bound("after")}`)
    .orderBy(firstBy(execution.seq))
    .prepare();
}

function prepareAgents(db: BetterSQLite3Database) {
  return db
    .select({
      id: agent.id,
      status: agent.status,
      deletedUs: agent.deletedUs,
      changedUs: agent.changedUs,
      seq: agent.seq,
    })
    .from(agent)
    .where(sql`${agent.owner} = ${bound("owner")} AND ${agent.seq} > ${bound("after")}`)
    .orderBy(firstBy(agent.seq))
    .prepare();
}
