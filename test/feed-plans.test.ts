import { join } from "node:path";
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { expect, test } from "vitest";
import type { ChangeKind } from "../src/domain/record.ts";
import type { FeedQuery, RecordStore } from "../src/storage/port.ts";
import { createSealer } from "../src/storage/sealing.ts";
import { createLedger } from "../src/storage/sqlite/ledger.ts";
import { migrateSqliteFile } from "../src/storage/sqlite/open.ts";
import { createRecordStore } from "../src/storage/sqlite/records/records.ts";
import { createWriter } from "../src/storage/sqlite/writer.ts";
import { createFakeClock, makeFolder, testKey } from "./suites/open-store.ts";
import { feedQuery, recordDraft } from "./suites/record-drafts.ts";

const kinds: ReadonlySet<ChangeKind> = new Set(["workflow", "execution", "agent"]);
const queries: readonly Partial<FeedQuery>[] = [
  { kinds },
  { types: ["note", "task"] },
  { entityIds: ["n1", "n2"] },
  { after: 1, exceptAgentId: "agent-1", withTombstones: false },
];

test("no statement of a push or of the feed scans or sorts", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  migrateSqliteFile(path);
  const statements = new Set<string>();
  const connection = new Database(path, { verbose: (sql) => statements.add(String(sql)) });
  const records = openRecords(connection);
  await pushEverything(records);
  for (const query of queries) await records.readFeed("alice", feedQuery(query));
  await records.head("alice");
  const queried = [...statements].filter((it) => /^(select|insert|update|delete)/i.test(it));
  expect(queried.length).toBeGreaterThan(20);
  for (const statement of queried) {
    const plan = connection.prepare(`EXPLAIN QUERY PLAN ${statement}`).all();
    const steps = plan.map((it) => JSON.stringify(it));
    const slow = steps.filter((it) => /SCAN (?!json_each)|TEMP B-TREE|AUTOMATIC/.test(it));
    expect({ statement, slow }).toStrictEqual({ statement, slow: [] });
  }
  connection.close();
});

function openRecords(connection: Database.Database): RecordStore {
  const db = drizzle(connection);
  const clock = createFakeClock();
  return createRecordStore({
    db,
    writer: createWriter(connection),
    ledger: createLedger(db, clock),
    clock,
    sealer: createSealer(testKey(1)),
    newToken: () => "token",
  });
}

/** Every rule of a push is met once. */
async function pushEverything(records: RecordStore): Promise<void> {
  const drafts = [
    recordDraft({ mutationId: "m1" }),
    recordDraft({ mutationId: "m1" }),
    recordDraft({ mutationId: "m2" }),
    recordDraft({ version: "0.1" }),
    recordDraft({ version: "2" }),
    recordDraft({ entityId: "n2", deleted: true }),
  ];
  const { result } = await records.pushRecords("alice", {
    agentId: "agent-1",
    drafts,
    mode: "each",
  });
  expect(result.map(({ status }) => status)).toStrictEqual([
    "created",
    "created",
    "unchanged",
    "conflict",
    "updated",
    "deleted",
  ]);
}
