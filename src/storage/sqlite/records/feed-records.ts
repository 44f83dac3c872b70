import { type SQL, sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import type { FeedItem } from "../../../domain/record.ts";
import type { FeedQuery } from "../../port.ts";
import { bound, firstBy } from "../bound.ts";
import { syncEntity } from "../schema.ts";
import type { Line, Place } from "./feed-lines.ts";
import { toRecord } from "./record-rows.ts";

/** The records of the feed. */
export interface FeedRecords {
  /** One line for live records and one for tombstones; each for every type or entity asked for. */
  linesOf(owner: string, query: FeedQuery): readonly Line[];
  /** The records that stand at the places, by position. */
  read(owner: string, places: readonly Place[]): ReadonlyMap<number, FeedItem>;
}

export function createFeedRecords(db: BetterSQLite3Database): FeedRecords {
  const looks = prepareLooks(db);
  const readAt = prepareReadAt(db);
  return {
    linesOf(owner, query) {
      const isWanted = wantedBy(query);
      return statesOf(query).flatMap(({ deleted, after }) =>
        keysOf(query).map((key) => ({
          after,
          look: (from: number, limit: number) =>
            looks[key.kind]
              .all({ owner, key: key.value, deleted, after: from, limit })
              .map((row) => ({
                seq: row.seq,
                isWanted: isWanted(row),
                dataBytes: row.dataBytes,
                nameBytes: row.nameBytes,
                change: null,
              })),
        })),
      );
    },
    read(owner, places) {
      const seqs = places.filter(({ change }) => change === null).map(({ seq }) => seq);
      if (seqs.length === 0) return new Map();
      const rows = readAt.all({ owner, seqs: JSON.stringify(seqs) });
      return new Map(
        rows.map((row) => [row.seq, { record: toRecord(row, row, row.encryptedData) }]),
      );
    },
  };
}

/** Live records, tombstones or both, and from where on. */
function statesOf(
  query: FeedQuery,
): readonly { readonly deleted: 0 | 1; readonly after: number }[] {
  const { after, withRecords, withTombstones, tombstonesAfter = 0 } = query;
  return [
    ...(withRecords ? [{ deleted: 0, after } as const] : []),
    ...(withTombstones ? [{ deleted: 1, after: Math.max(after, tombstonesAfter) } as const] : []),
  ];
}

type Key = { readonly kind: "any" | "type" | "entityId"; readonly value: string };

function keysOf({ types, entityIds }: FeedQuery): readonly Key[] {
  if (entityIds.length > 0) return toKeys("entityId", entityIds);
  return types.length > 0 ? toKeys("type", types) : [{ kind: "any", value: "" }];
}

function toKeys(kind: Key["kind"], values: readonly string[]): readonly Key[] {
  return [...new Set(values)].map((value) => ({ kind, value }));
}

/** What no line tells apart. */
function wantedBy({ types, exceptAgentId }: FeedQuery) {
  const asked = new Set(types);
  return (row: { readonly type: string; readonly agentId: string }): boolean =>
    (asked.size === 0 || asked.has(row.type)) && row.agentId !== exceptAgentId;
}

function prepareLooks(db: BetterSQLite3Database) {
  const prepareLook = (isKey: SQL) =>
    db
      .select({
        seq: syncEntity.seq,
        type: syncEntity.type,
        agentId: syncEntity.agentId,
        dataBytes: sql<number>`octet_length(${syncEntity.encryptedData})`,
        nameBytes: sql<number>`octet_length(${syncEntity.type})
          + octet_length(${syncEntity.entityId})
          + octet_length(${syncEntity.version})
          + octet_length(${syncEntity.agentId})`,
      })
      .from(syncEntity)
      .where(
        sql`${syncEntity.owner} = ${bound("owner")} AND ${isKey}
          AND ${syncEntity.deleted} = ${bound("deleted")} AND ${syncEntity.seq} > ${bound("after")}`,
      )
      .orderBy(firstBy(syncEntity.seq))
      .prepare();
  return {
    any: prepareLook(sql`${bound("key")} = ''`),
    type: prepareLook(sql`${syncEntity.type} = ${bound("key")}`),
    entityId: prepareLook(sql`${syncEntity.entityId} = ${bound("key")}`),
  };
}

/** One seek a position: never more rows than the page was measured to hold. */
function prepareReadAt(db: BetterSQLite3Database) {
  return db
    .select()
    .from(syncEntity)
    .where(
      sql`${syncEntity.owner} = ${bound("owner")} AND ${syncEntity.deleted} IN (0, 1)
        AND ${syncEntity.seq} IN (SELECT value FROM json_each(${bound("seqs")}))`,
    )
    .prepare();
}
