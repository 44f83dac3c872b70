import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import type { SyncRecord } from "../../../domain/record.ts";
import { syncEntity, syncMutation } from "../schema.ts";

export type RecordRows = ReturnType<typeof createRecordRows>;
/** A record but for its key and its data, which may be large. */
export type StateRow = NonNullable<ReturnType<RecordRows["readState"]["get"]>>;
export type MutationRow = typeof syncMutation.$inferSelect;

interface EntityKey {
  readonly type: string;
  readonly entityId: string;
}

const p = sql.placeholder;
const isThis = sql`${syncEntity.owner} = ${p("owner")} AND ${syncEntity.type} = ${p("type")}
  AND ${syncEntity.entityId} = ${p("entityId")}`;

/** The statements of a push, prepared once. */
export function createRecordRows(db: BetterSQLite3Database) {
  return {
    readState: db
      .select({
        version: syncEntity.version,
        deleted: syncEntity.deleted,
        revision: syncEntity.revision,
        agentId: syncEntity.agentId,
        createdUs: syncEntity.createdUs,
        updatedUs: syncEntity.updatedUs,
        seq: syncEntity.seq,
        // Known from the head of the row: the data itself is not read.
        dataBytes: sql<number>`octet_length(${syncEntity.encryptedData})`,
      })
      .from(syncEntity)
      .where(isThis)
      .prepare(),
    readData: db
      .select({ encryptedData: syncEntity.encryptedData })
      .from(syncEntity)
      .where(isThis)
      .prepare(),
    upsert: prepareUpsert(db),
    ...mutationStatements(db),
  };
}

export function toRecord(
  { type, entityId }: EntityKey,
  row: Omit<StateRow, "dataBytes">,
  encryptedData: string,
): SyncRecord {
  return {
    type,
    entityId,
    encryptedData,
    version: row.version,
    deleted: row.deleted,
    revision: row.revision,
    cursor: row.seq,
    agentId: row.agentId,
    createdUs: row.createdUs,
    updatedUs: row.updatedUs,
  };
}

/** Keeps `created_us`, also over a tombstone. */
function prepareUpsert(db: BetterSQLite3Database) {
  return db
    .insert(syncEntity)
    .values({
      owner: p("owner"),
      type: p("type"),
      entityId: p("entityId"),
      encryptedData: p("encryptedData"),
      version: p("version"),
      deleted: p("deleted"),
      revision: p("revision"),
      agentId: p("agentId"),
      createdUs: p("createdUs"),
      updatedUs: p("updatedUs"),
      seq: p("seq"),
    })
    .onConflictDoUpdate({
      target: [syncEntity.owner, syncEntity.type, syncEntity.entityId],
      set: {
        encryptedData: sql`excluded.encrypted_data`,
        version: sql`excluded.version`,
        deleted: sql`excluded.deleted`,
        revision: sql`excluded.revision`,
        agentId: sql`excluded.agent_id`,
        updatedUs: sql`excluded.updated_us`,
        seq: sql`excluded.seq`,
      },
    })
    .prepare();
}

function mutationStatements(db: BetterSQLite3Database) {
  return {
    readMutation: db
      .select()
      .from(syncMutation)
      .where(
        sql`${syncMutation.owner} = ${p("owner")}
          AND ${syncMutation.mutationId} = ${p("mutationId")}`,
      )
      .prepare(),
    insertMutation: db
      .insert(syncMutation)
      .values({
        owner: p("owner"),
        mutationId: p("mutationId"),
        type: p("type"),
        entityId: p("entityId"),
        version: p("version"),
        deleted: p("deleted"),
        status: p("status"),
        revision: p("revision"),
        seq: p("seq"),
        agentId: p("agentId"),
        createdUs: p("createdUs"),
        updatedUs: p("updatedUs"),
        acceptedUs: p("acceptedUs"),
      })
      .prepare(),
  };
}
