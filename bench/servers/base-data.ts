import { cp } from "node:fs/promises";
import { join } from "node:path";
import type { Database } from "better-sqlite3";
import { issueToken } from "../../src/calls/auth/issuer.ts";
import { ensureSigningKey } from "../../src/calls/auth/signing-keys.ts";
import { systemClock } from "../../src/cli/clock.ts";
import { spans } from "../../src/domain/limits.ts";
import type { Store } from "../../src/storage/port.ts";
import { createSealer } from "../../src/storage/sealing.ts";
import { loadServerKey } from "../../src/storage/server-key.ts";
import { makeDatabaseFile, openConnection } from "../../src/storage/sqlite/file/connection.ts";
import { openSqliteStore } from "../../src/storage/sqlite/open.ts";
import { createSqliteStore } from "../../src/storage/sqlite/store.ts";

/** A data directory with keys and a database, made before the server starts. */
export interface DataFolder {
  readonly path: string;
  /** A token of this owner that outlives the measurement. */
  token(owner: string): Promise<string>;
}

/** Writes data. What no call could write faster goes through the connection, in whole tables. */
export type Fill = (store: Store, connection: Database) => Promise<void>;

const tokenSeconds = 24 * 3600;

/** Makes keys and a database, and has `fill` write into its store. */
export async function makeData(path: string, fill: Fill): Promise<DataFolder> {
  const databasePath = join(path, "sealflow.db");
  makeDatabaseFile(databasePath);
  const { key } = loadServerKey({ dataDir: path, hasKeyCheck: false });
  // Migrates, and marks the file with the key.
  const opened = await openSqliteStore({
    path: databasePath,
    masterKey: key,
    clock: systemClock(),
  });
  await opened[Symbol.asyncDispose]();
  const connection = openHastily(databasePath);
  const store = storeOn(connection, key);
  await fill(store, connection);
  await store[Symbol.asyncDispose]();
  return dataFolder(path);
}

/** A copy for another server. */
export async function copyData(from: DataFolder, path: string): Promise<DataFolder> {
  await cp(from.path, path, { recursive: true });
  return dataFolder(path);
}

async function dataFolder(path: string): Promise<DataFolder> {
  const { active } = await ensureSigningKey(path);
  return {
    path,
    async token(sub) {
      const draft = { sub, ttlSeconds: tokenSeconds, nowMs: Date.now() };
      return (await issueToken(active, draft)).token;
    },
  };
}

/** A file that nobody minds losing: it never waits for the disk, and nothing can be undone. */
function openHastily(path: string): Database {
  const connection = openConnection(path);
  for (const pragma of [
    "locking_mode = EXCLUSIVE",
    "journal_mode = OFF",
    "synchronous = OFF",
    "secure_delete = OFF",
    "cache_size = -524288",
  ]) {
    connection.pragma(pragma);
  }
  return connection;
}

function storeOn(connection: Database, key: Uint8Array): Store {
  let tokens = 0;
  return createSqliteStore({
    connection,
    lock: undefined,
    epoch: "",
    clock: systemClock(),
    sealer: createSealer(key),
    executionKeptUs: spans.executionKeptUs,
    newToken: () => {
      tokens += 1;
      return `filled-${tokens}`;
    },
  });
}
