import { randomUUID } from "node:crypto";
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import Database from "better-sqlite3";

/** The rows of `meta`. */
type Name = "epoch" | "key_check";

/** The database holds values sealed under another key. */
export class WrongServerKeyError extends Error {
  constructor(path: string) {
    super(
      `The server's key does not open ${path}. Put back the key it was made with: the file ` +
        "server.key of its data directory, or SEALFLOW_MASTER_KEY.",
    );
    this.name = "WrongServerKeyError";
  }
}

/** A backup lies beside the write-ahead log of another database, which would be written over it. */
export class StaleWalError extends Error {
  constructor(path: string) {
    super(
      `${path} is a backup, and ${path}-wal beside it belongs to what was there before. ` +
        `Delete ${path}-wal and ${path}-shm, then start.`,
    );
    this.name = "StaleWalError";
  }
}

/** Another process reads a backup that is to be written to for the first time. */
export class BackupInUseError extends Error {
  constructor(path: string) {
    super(`Another process is reading the backup ${path}. End it, then start.`);
    this.name = "BackupInUseError";
  }
}

/** The application id of a backup, in the file's header: it can be read without the log. */
const backupId = 0x5ea1_f10b;
/** SQLite's file format, section 1.3: the application id, 4 bytes, the most significant first. */
const applicationIdAt = 68;

/**
 * Throws StaleWalError for a backup that was put in the place of a database without taking its log
 * away. Before this process has opened the file: closing it later would drop SQLite's locks.
 */
export function refuseStaleWal(path: string): void {
  const wal = `${path}-wal`;
  if (!existsSync(path) || !existsSync(wal) || statSync(wal).size === 0) return;
  const header = Buffer.alloc(4);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, header.length, applicationIdAt);
  } finally {
    closeSync(file);
  }
  if (header.readUInt32BE() === backupId) throw new StaleWalError(path);
}

/**
 * The check value of the key that a database was made with; null when it has none, or is absent.
 * Throws StaleWalError.
 */
export function readKeyCheck(path: string): string | null {
  if (!existsSync(path)) return null;
  refuseStaleWal(path);
  const connection = new Database(path, { readonly: true, fileMustExist: true });
  try {
    const table = connection
      .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'")
      .get();
    return table === undefined ? null : (read(connection, "key_check") ?? null);
  } finally {
    connection.close();
  }
}

/** Stores the check value of the server's key at the first open; throws WrongServerKeyError. */
export function checkServerKey(connection: Database.Database, keyCheck: string): void {
  if (settle(connection, "key_check", keyCheck) !== keyCheck) {
    throw new WrongServerKeyError(connection.name);
  }
}

/** The name of this history of the store, drawn when there is none. */
export function readEpoch(connection: Database.Database): string {
  return settle(connection, "epoch", randomUUID());
}

/**
 * What a copy was made of goes on elsewhere: whoever first writes to the copy begins a new history,
 * and the log is this database's own from then on. The file itself must say so before anything else
 * is written. Throws BackupInUseError.
 */
export function leaveBackedUpHistory(connection: Database.Database): void {
  const leave = connection.transaction(() => {
    if (!isMarked(connection)) return false;
    connection.prepare("DELETE FROM meta WHERE name = 'epoch'").run();
    connection.pragma("application_id = 0");
    return true;
  });
  if (!isMarked(connection) || !leave.immediate()) return;
  const busy = connection.pragma("wal_checkpoint(TRUNCATE)", { simple: true });
  if (busy !== 0) throw new BackupInUseError(connection.name);
}

/** Marks a finished copy as one; nobody may be using it. */
export function markBackup(path: string): void {
  const connection = new Database(path, { fileMustExist: true });
  try {
    connection.pragma(`application_id = ${backupId}`);
  } finally {
    connection.close();
  }
}

function isMarked(connection: Database.Database): boolean {
  return connection.pragma("application_id", { simple: true }) === backupId;
}

/** Writes a row unless there is one, and reads it. Two processes agree on what they read. */
function settle(connection: Database.Database, name: Name, value: string): string {
  const known = read(connection, name);
  if (known !== undefined) return known;
  connection
    .prepare("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING")
    .run(name, value);
  return read(connection, name) ?? value;
}

function read(connection: Database.Database, name: Name): string | undefined {
  const value = connection.prepare("SELECT value FROM meta WHERE name = ?").pluck().get(name);
  return typeof value === "string" ? value : undefined;
}
