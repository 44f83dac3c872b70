import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import type { Workflow } from "../../../domain/workflow.ts";
import { splitCapabilities } from "../agents/capability-text.ts";
import { bound, firstBy } from "../bound.ts";
import { workflow, workflowPayload } from "../schema.ts";

export type WorkflowRow = typeof workflow.$inferSelect;
export type WorkflowRows = ReturnType<typeof createWorkflowRows>;

const p = sql.placeholder;
const isLive = sql`${workflow.deletedUs} IS NULL`;

/**
 * The statements of workflows, prepared once. Those of a row name its owner; those of a payload rely
 * on its row having been read so.
 */
export function createWorkflowRows(db: BetterSQLite3Database) {
  return {
    ...rowStatements(db),
    ...pageStatements(db),
    ...payloadStatements(db),
  };
}

/** What a workflow shows of its row: a page reads no more, for a row costs by its columns. */
const shown = {
  id: workflow.id,
  name: workflow.name,
  description: workflow.description,
  status: workflow.status,
  agentId: workflow.agentId,
  allowPublic: workflow.allowPublic,
  requiredCapabilities: workflow.requiredCapabilities,
  createdUs: workflow.createdUs,
  updatedUs: workflow.updatedUs,
};
type ShownRow = Pick<WorkflowRow, keyof typeof shown>;

/** `encryptedData` is empty where payloads are left out. */
export function toWorkflow(row: ShownRow, encryptedData: string): Workflow {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    status: row.status,
    encryptedData,
    agentId: row.agentId,
    allowPublic: row.allowPublic,
    requiredCapabilities: splitCapabilities(row.requiredCapabilities),
    createdUs: row.createdUs,
    updatedUs: row.updatedUs,
  };
}

function rowStatements(db: BetterSQLite3Database) {
  const isThis = sql`${workflow.id} = ${p("id")} AND ${workflow.owner} = ${p("owner")}
    AND ${isLive}`;
  return {
    read: db.select().from(workflow).where(isThis).prepare(),
    insert: db
      .insert(workflow)
      .values({
        id: p("id"),
        owner: p("owner"),
        name: p("name"),
        description: p("description"),
        status: "draft",
        agentOwner: p("agentOwner"),
        agentId: p("agentId"),
        allowPublic: p("allowPublic"),
        requiredCapabilities: p("requiredCapabilities"),
        runsStarted: 0,
        runsWaiting: 0,
        createdUs: p("nowUs"),
        updatedUs: p("nowUs"),
        seq: p("seq"),
      })
      .prepare(),
    update: db
      .update(workflow)
      .set({
        name: sql`${p("name")}`,
        description: sql`${p("description")}`,
        agentOwner: sql`${p("agentOwner")}`,
        agentId: sql`${p("agentId")}`,
        allowPublic: sql`${p("allowPublic")}`,
        requiredCapabilities: sql`${p("requiredCapabilities")}`,
        updatedUs: sql`${p("nowUs")}`,
        seq: sql`${p("seq")}`,
      })
      .where(isThis)
      .prepare(),
    /** Leaves the id and its place in the feed. */
    markDeleted: db
      .update(workflow)
      .set({
        name: "",
        description: "",
        agentOwner: "",
        agentId: "",
        requiredCapabilities: "",
        updatedUs: sql`${p("nowUs")}`,
        deletedUs: sql`${p("nowUs")}`,
        seq: sql`${p("seq")}`,
      })
      .where(isThis)
      .prepare(),
  };
}

/** The key as a row value: only so is the whole of it searched in the index. */
function pageStatements(db: BetterSQLite3Database) {
  const isOlder = sql`(${workflow.createdUs}, ${workflow.id})
    < (${bound("createdUs")}, ${bound("id")})`;
  const isOwn = sql`${workflow.owner} = ${bound("owner")} AND ${isLive} AND ${isOlder}`;
  const newestFirst = firstBy(sql`${workflow.createdUs} DESC, ${workflow.id} DESC`);
  return {
    page: db.select(shown).from(workflow).where(isOwn).orderBy(newestFirst).prepare(),
    pageOfStatus: db
      .select(shown)
      .from(workflow)
      .where(sql`${isOwn} AND ${workflow.status} = ${bound("status")}`)
      .orderBy(newestFirst)
      .prepare(),
  };
}

function payloadStatements(db: BetterSQLite3Database) {
  const isThis = sql`${workflowPayload.workflowId} = ${p("id")}`;
  return {
    readData: db
      .select({ encryptedData: workflowPayload.encryptedData })
      .from(workflowPayload)
      .where(isThis)
      .prepare(),
    insertPayload: db
      .insert(workflowPayload)
      .values({
        workflowId: p("id"),
        encryptedData: p("encryptedData"),
        sealedKey: p("sealedKey"),
      })
      .prepare(),
    updateData: db
      .update(workflowPayload)
      .set({ encryptedData: sql`${p("encryptedData")}` })
      .where(isThis)
      .prepare(),
    updateKey: db
      .update(workflowPayload)
      .set({ sealedKey: sql`${p("sealedKey")}` })
      .where(isThis)
      .prepare(),
    erasePayload: db.delete(workflowPayload).where(isThis).prepare(),
  };
}
