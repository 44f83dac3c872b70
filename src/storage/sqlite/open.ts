import { randomBytes } from "node:crypto";
import type { Database } from "better-sqlite3";
import type { Clock } from "../../domain/clock.ts";
import { spans } from "../../domain/limits.ts";
import type { Store } from "../port.ts";
import { createSealer } from "../sealing.ts";
import { makeDatabaseFile, openConnection, stopBlocking } from "./file/connection.ts";
import {
  checkServerKey,
  leaveBackedUpHistory,
  readEpoch,
  refuseStaleWal,
} from "./file/identity.ts";
import { takeLock } from "./file/lock.ts";
import { migrateConnection, needsMigration } from "./migrate.ts";
import { createSqliteStore } from "./store.ts";

export interface SqliteStoreOptions {
  /** The database file; made, with its directory, when it is absent. */
  readonly path: string;
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
  readonly clock: Clock;
  /** 128 random bits, base64url. */
  readonly newToken?: () => string;
  /** False for a command that works beside a running server. */
  readonly exclusive?: boolean;
  /** How long an execution is kept after its end. */
  readonly executionKeptUs?: number;
}

/**
 * Opens the store of one file and brings its schema up to date. Throws StoreHeldError for a second
 * server on the same file, WrongServerKeyError when the file was made with another key,
 * NewerStoreError when a newer version of this program has migrated it, StaleWalError and
 * BackupInUseError for a backup that cannot be begun on.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, exclusive = true } = options;
  makeDatabaseFile(path);
  const lock = exclusive ? takeLock(path) : undefined;
  try {
    return openHeld(options, lock);
  } catch (cause) {
    lock?.[Symbol.dispose]();
    throw cause;
  }
}

/**
 * Brings the schema of a file up to date and leaves it. Throws as openSqliteStore, but for the key.
 */
export function migrateSqliteFile(path: string): { readonly changed: boolean } {
  makeDatabaseFile(path);
  const connection = openOwn(path);
  try {
    return { changed: bringUpToDate(connection, false) };
  } finally {
    connection.close();
  }
}

function openHeld(options: SqliteStoreOptions, lock: Disposable | undefined): Store {
  const connection = openOwn(options.path);
  try {
    bringUpToDate(connection, lock !== undefined);
    const sealer = createSealer(options.masterKey);
    checkServerKey(connection, sealer.keyCheck);
    const epoch = readEpoch(connection);
    stopBlocking(connection);
    return createSqliteStore({
      connection,
      lock,
      epoch,
      sealer,
      clock: options.clock,
      newToken: options.newToken ?? (() => randomBytes(16).toString("base64url")),
      executionKeptUs: options.executionKeptUs ?? spans.executionKeptUs,
    });
  } catch (cause) {
    connection.close();
    throw cause;
  }
}

function openOwn(path: string): Database {
  refuseStaleWal(path);
  const connection = openConnection(path);
  try {
    leaveBackedUpHistory(connection);
    return connection;
  } catch (cause) {
    connection.close();
    throw cause;
  }
}

/** A running server relies on the schema it found: whoever changes it holds the lock. */
function bringUpToDate(connection: Database, isLocked: boolean): boolean {
  if (!needsMigration(connection)) return false;
  const lock = isLocked ? undefined : takeLock(connection.name);
  try {
    migrateConnection(connection);
    return true;
  } finally {
    lock?.[Symbol.dispose]();
  }
}
