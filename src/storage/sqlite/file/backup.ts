import { closeSync, existsSync, openSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { placeFile, syncPath } from "../../whole-file.ts";
import { markBackup, readKeyCheck } from "./identity.ts";

/** A backup that was not made. The text says why. */
export class BackupError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "BackupError";
  }
}

/**
 * Copies a database as it is at one moment, while a server may be writing to it: checked, marked as
 * a copy and durable before it appears under its name. Throws BackupError; never replaces a file.
 */
export function backUpSqliteFile(path: string, target: string): { readonly bytes: number } {
  const keyCheck = readKeyCheck(path);
  if (keyCheck === null) throw new BackupError(`${path} is no database of Sealflow`);
  if (existsSync(target)) throw exists(target);
  if (!existsSync(dirname(target))) throw new BackupError(`${dirname(target)} is no directory`);
  const aside = `${target}.${process.pid}.partial`;
  try {
    // For this user alone: what SQLite makes by itself may be read by others.
    closeSync(openSync(aside, "wx", 0o600));
    copyInto(path, aside);
    markBackup(aside);
    check(aside, keyCheck);
    syncPath(aside);
    if (!placeFile(aside, target)) throw exists(target);
  } finally {
    for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(`${aside}${end}`, { force: true });
  }
  syncPath(dirname(target));
  return { bytes: statSync(target).size };
}

function copyInto(path: string, target: string): void {
  const connection = new Database(path, { fileMustExist: true, timeout: 5_000 });
  try {
    connection.prepare("VACUUM INTO ?").run(target);
  } finally {
    connection.close();
  }
}

function check(copy: string, keyCheck: string): void {
  const connection = new Database(copy, { fileMustExist: true });
  try {
    const found = connection.pragma("integrity_check", { simple: true });
    if (found !== "ok") throw new BackupError(`The copy is damaged: ${String(found)}`);
    const broken = connection.pragma("foreign_key_check");
    if (!Array.isArray(broken) || broken.length > 0) {
      throw new BackupError("The copy has rows without what they refer to");
    }
  } finally {
    connection.close();
  }
  if (readKeyCheck(copy) !== keyCheck) throw new BackupError("The copy lacks rows of the database");
}

function exists(target: string): BackupError {
  return new BackupError(`${target} exists. A backup replaces nothing`);
}
