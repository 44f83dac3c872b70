import { join } from "node:path";
import type { Database } from "better-sqlite3";
import { createSealer } from "../src/storage/sealing.ts";
import { makeDatabaseFile, openConnection } from "../src/storage/sqlite/file/connection.ts";
import { migrateConnection } from "../src/storage/sqlite/migrate.ts";
import { createSqliteStore } from "../src/storage/sqlite/store.ts";
import { createFakeClock, makeFolder, type OpenedStore, testKey } from "./suites/open-store.ts";

/** A fresh SQLite store whose connection the test shares: it sees what the port does not show. */
export interface SharedStore extends OpenedStore {
  readonly connection: Database;
  /** Every statement that the store has prepared. */
  readonly statements: readonly string[];
}

export async function openSharedStore(): Promise<SharedStore> {
  const folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  makeDatabaseFile(path);
  const connection = openConnection(path);
  migrateConnection(connection);
  const statements: string[] = [];
  const prepare = connection.prepare.bind(connection);
  connection.prepare = (sql: string) => {
    statements.push(sql);
    return prepare(sql);
  };
  let tokens = 0;
  const clock = createFakeClock();
  const store = createSqliteStore({
    connection,
    lock: undefined,
    epoch: "",
    clock,
    sealer: createSealer(testKey(1)),
    executionKeptUs: 0,
    newToken: () => {
      tokens += 1;
      return `token-${tokens}`;
    },
  });
  return {
    store,
    clock,
    connection,
    statements: [...statements],
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}
