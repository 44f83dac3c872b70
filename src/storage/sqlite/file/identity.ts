import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import Database from "better-sqlite3";

/** The rows of `meta`. `backup` marks a copy: its first server draws a new epoch. */
type Name = "epoch" | "key_check" | "backup";

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

/** The check value of the key that a database was made with; null when it has none, or is absent. */
export function readKeyCheck(path: string): string | null {
  if (!existsSync(path)) return null;
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

/** What a copy was made of goes on elsewhere: a server that begins on it begins a new history. */
export function leaveBackedUpHistory(connection: Database.Database): void {
  connection
    .transaction(() => {
      if (read(connection, "backup") === undefined) return;
      const remove = connection.prepare("DELETE FROM meta WHERE name IN ('epoch', 'backup')");
      remove.run();
    })
    .immediate();
}

/** Marks a finished copy as one; nobody may be using it. */
export function markBackup(path: string): void {
  const connection = new Database(path, { fileMustExist: true });
  try {
    settle(connection, "backup", "1");
  } finally {
    connection.close();
  }
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
