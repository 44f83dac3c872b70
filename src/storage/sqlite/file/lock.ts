import { chmodSync, readFileSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { makeDatabaseFile } from "./connection.ts";

/** Another server holds the database. `holder` is what it says of itself; empty when unreadable. */
export class StoreHeldError extends Error {
  readonly holder: string;

  constructor(path: string, holder: string) {
    const by = holder === "" ? "" : ` (${holder})`;
    super(`Another server is using ${path}${by}. Stop it, or use another data directory.`);
    this.name = "StoreHeldError";
    this.holder = holder;
  }
}

/** Where the server that holds the database says who and where it is, for the refusal's text. */
export function holderPath(path: string): string {
  return `${path}.holder`;
}

/**
 * Makes this process the only server of the database; the system frees the lock when it dies. The
 * lock is a second SQLite file, so that commands may use the database meanwhile. Nobody may open
 * that file by other means: closing it would free the lock. Throws StoreHeldError.
 */
export function takeLock(path: string): Disposable {
  const file = `${path}.lock`;
  // For this user alone: whoever can read it could lock it.
  makeDatabaseFile(file);
  if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
  const lock = new Database(file, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
  } catch (cause) {
    lock.close();
    if (cause instanceof Database.SqliteError && cause.code.startsWith("SQLITE_BUSY")) {
      throw new StoreHeldError(path, readHolder(path));
    }
    throw cause;
  }
  return {
    [Symbol.dispose]: () => {
      lock.close();
    },
  };
}

function readHolder(path: string): string {
  try {
    return readFileSync(holderPath(path), "utf8").trim();
  } catch {
    return "";
  }
}
