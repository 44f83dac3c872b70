import { join } from "node:path";
import type { Database } from "better-sqlite3";
import { expect, test } from "vitest";
import { createSealer } from "../src/storage/sealing.ts";
import { makeDatabaseFile, openConnection } from "../src/storage/sqlite/connection.ts";
import { migrateConnection } from "../src/storage/sqlite/migrate.ts";
import { createSqliteStore } from "../src/storage/sqlite/store.ts";
import { createFakeClock, makeFolder, testKey } from "./suites/open-store.ts";

/** Tables that grow with use. A scan of the recursive `line`, one row a set, is what it is for. */
const scansATable = /^SCAN (?!line|\(subquery|CONSTANT ROW)/;

test("every prepared statement of the store seeks into an index", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  makeDatabaseFile(path);
  const connection = openConnection(path);
  migrateConnection(connection);
  const statements = recordStatements(connection);
  await using store = createSqliteStore({
    connection,
    lock: undefined,
    epoch: "",
    clock: createFakeClock(),
    sealer: createSealer(testKey(1)),
    executionKeptUs: 0,
    newToken: () => "",
  });
  expect(store.isWritable()).toBe(true);
  const scanning = statements
    .filter((sql) => /^(with|select|insert|update|delete)/i.test(sql))
    .flatMap((sql) =>
      planOf(connection, sql)
        .filter((step) => scansATable.test(step))
        .map((step) => `${step}: ${sql}`),
    );
  expect(statements.length).toBeGreaterThan(80);
  expect(scanning).toStrictEqual([]);
});

/** Every statement prepared from now on. */
function recordStatements(connection: Database): string[] {
  const statements: string[] = [];
  const prepare = connection.prepare.bind(connection);
  connection.prepare = (sql: string) => {
    statements.push(sql);
    return prepare(sql);
  };
  return statements;
}

function planOf(connection: Database, sql: string): string[] {
  const explain = connection.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`);
  const values = Array<null>((sql.match(/\?/g) ?? []).length).fill(null);
  return explain.all(...values).map(({ detail }) => detail);
}
