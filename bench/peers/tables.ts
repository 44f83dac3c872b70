import { randomUUID } from "node:crypto";
import Database from "better-sqlite3";

/**
 * The SQLite work of Sealflow as a plain program does it: the same rows and columns of the same
 * tables, through the same driver, each statement prepared once, one commit a write.
 */
export interface Tables {
  getWorkflow(id: string): WorkflowRow | undefined;
  listWorkflows(limit: number): { readonly rows: readonly WorkflowRow[]; readonly total: number };
  createWorkflow(draft: WorkflowDraft): WorkflowRow;
  /** All in one commit. */
  pushRecords(records: readonly RecordDraft[]): readonly RecordRow[];
}

export interface WorkflowRow {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly status: "draft" | "running" | "completed" | "failed";
  readonly agent_id: string;
  readonly allow_public: number;
  readonly required_capabilities: string;
  readonly created_us: number;
  readonly updated_us: number;
  /** Absent in lists. */
  readonly encrypted_data?: string;
}

export interface WorkflowDraft {
  readonly name: string;
  readonly description: string;
  readonly encryptedData: string;
}

export interface RecordDraft {
  readonly type: string;
  readonly entityId: string;
  readonly version: string;
  readonly encryptedData: string;
}

export interface RecordRow extends RecordDraft {
  readonly isNew: boolean;
  readonly revision: number;
  readonly seq: number;
  readonly agentId: string;
  readonly createdUs: number;
  readonly updatedUs: number;
}

interface StateRow {
  readonly version: string;
  readonly deleted: number;
  readonly revision: number;
  readonly created_us: number;
}

const columns = `id, owner, name, description, status, agent_owner, agent_id, allow_public,
  required_capabilities, runs_started, runs_waiting, last_outcome, created_us, updated_us,
  deleted_us, seq`;
/** Who pushes: peers know no agents. */
const agentId = "peer";

export function openTables(path: string, owner: string): Tables {
  const db = new Database(path, { fileMustExist: true });
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = NORMAL");
  return { ...workflowTable(db, owner), ...recordTable(db, owner) };
}

function workflowTable(db: Database.Database, owner: string) {
  const read = db.prepare<[string, string], WorkflowRow>(
    `SELECT ${columns}, encrypted_data FROM workflow JOIN workflow_payload ON workflow_id = id
     WHERE id = ? AND owner = ? AND deleted_us IS NULL`,
  );
  const page = db.prepare<[string, number], WorkflowRow>(
    `SELECT ${columns} FROM workflow WHERE owner = ? AND deleted_us IS NULL
     ORDER BY created_us DESC, id DESC LIMIT ?`,
  );
  const total = db.prepare<[string], { readonly n: number }>(
    "SELECT sum(n) AS n FROM counter WHERE owner = ? AND kind = 'workflow'",
  );
  const insert = db.prepare(
    `INSERT INTO workflow (${columns})
     VALUES (@id, @owner, @name, @description, 'draft', '', '', 0, '', 0, 0, NULL, @nowUs, @nowUs,
       NULL, @seq)`,
  );
  const insertPayload = db.prepare(
    "INSERT INTO workflow_payload (workflow_id, encrypted_data) VALUES (@id, @encryptedData)",
  );
  const count = db.prepare<[string]>(
    `INSERT INTO counter (owner, kind, status, n) VALUES (?, 'workflow', 'draft', 1)
     ON CONFLICT DO UPDATE SET n = n + 1`,
  );
  const nextSeq = seqStatement(db, owner);
  const create = db.transaction(({ name, description, encryptedData }: WorkflowDraft) => {
    const id = `wf_${randomUUID()}`;
    const nowUs = Date.now() * 1000;
    insert.run({ id, owner, name, description, nowUs, seq: nextSeq(nowUs) });
    insertPayload.run({ id, encryptedData });
    count.run(owner);
    const row = read.get(id, owner);
    if (row === undefined) throw new Error("not stored");
    return row;
  });
  return {
    getWorkflow: (id: string) => read.get(id, owner),
    listWorkflows: (limit: number) => ({
      rows: page.all(owner, limit),
      total: total.get(owner)?.n ?? 0,
    }),
    createWorkflow: (draft: WorkflowDraft) => create(draft),
  };
}

function recordTable(db: Database.Database, owner: string) {
  const readState = db.prepare<[string, string, string], StateRow>(
    `SELECT version, deleted, revision, agent_id, created_us, updated_us, seq,
       octet_length(encrypted_data)
     FROM sync_entity WHERE owner = ? AND type = ? AND entity_id = ?`,
  );
  const upsert = db.prepare(
    `INSERT INTO sync_entity (owner, type, entity_id, version, deleted, revision, agent_id,
       created_us, updated_us, seq, encrypted_data)
     VALUES (@owner, @type, @entityId, @version, 0, @revision, @agentId, @createdUs, @updatedUs,
       @seq, @encryptedData)
     ON CONFLICT DO UPDATE SET version = excluded.version, deleted = 0,
       revision = excluded.revision, agent_id = excluded.agent_id,
       updated_us = excluded.updated_us, seq = excluded.seq,
       encrypted_data = excluded.encrypted_data`,
  );
  const nextSeq = seqStatement(db, owner);
  const push = (draft: RecordDraft): RecordRow => {
    const { type, entityId, version, encryptedData } = draft;
    const state = readState.get(owner, type, entityId);
    const updatedUs = Date.now() * 1000;
    const row = {
      type,
      entityId,
      version,
      encryptedData,
      agentId,
      revision: (state?.revision ?? 0) + 1,
      seq: nextSeq(updatedUs),
      createdUs: state?.created_us ?? updatedUs,
      updatedUs,
    };
    upsert.run({ owner, ...row });
    return { ...row, isNew: state === undefined };
  };
  const pushAll = db.transaction((drafts: readonly RecordDraft[]) => drafts.map(push));
  return { pushRecords: (drafts: readonly RecordDraft[]) => pushAll(drafts) };
}

/** The next position of the owner's feed. */
function seqStatement(db: Database.Database, owner: string): (nowUs: number) => number {
  const take = db.prepare<[string, number], { readonly seq: number }>(
    `INSERT INTO feed_head (owner, seq) VALUES (?, ?)
     ON CONFLICT DO UPDATE SET seq = max(seq + 1, excluded.seq) RETURNING seq`,
  );
  return (nowUs) => take.get(owner, nowUs)?.seq ?? 0;
}
