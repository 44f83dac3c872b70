import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";

/** Opening may wait for a command that writes; a running server must not, for the wait blocks it. */
const openingTimeoutMs = 5_000;
const runningTimeoutMs = 20;
/**
 * A commit that makes the log longer than so many pages of 4 KiB copies it. Rarer than the default of
 * 1000 is faster on scattered updates.
 */
export const checkpointPages = 4_000;

/** Opens an existing file with all that durability needs. */
export function openConnection(path: string): Database.Database {
  const connection = new Database(path, { timeout: openingTimeoutMs, fileMustExist: true });
  try {
    connection.pragma("journal_mode = WAL");
    // Only after the line above: in WAL the build's own default is NORMAL, and takes effect at the
    // first write unless the pragma is given in WAL mode.
    connection.pragma("synchronous = FULL");
    connection.pragma("foreign_keys = ON");
    // What is deleted is overwritten: an erased payload must not be found in the file.
    connection.pragma("secure_delete = ON");
    connection.pragma(`wal_autocheckpoint = ${checkpointPages}`);
  } catch (cause) {
    connection.close();
    throw cause;
  }
  return connection;
}

/** From now on a foreign lock is waited for by the writer's timer. */
export function stopBlocking(connection: Database.Database): void {
  connection.pragma(`busy_timeout = ${runningTimeoutMs}`);
}

/**
 * Makes an absent file, and its directory, for this user alone. An existing file is not opened:
 * closing it would drop the locks that SQLite holds on it for this process (POSIX locks belong to
 * the process, not to the descriptor).
 */
export function makeDatabaseFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause;
  }
}
