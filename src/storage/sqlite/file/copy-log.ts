import type { Database } from "better-sqlite3";

/**
 * Copies what the log holds into the database's file, without waiting for anyone, and answers the log's length in
 * pages. A disk that is full or broken the next commit meets too, and it has someone to tell.
 */
export function copyLog(connection: Database): number {
  try {
    const [result] = connection.pragma("wal_checkpoint(PASSIVE)") as [{ readonly log: number }];
    return result.log;
  } catch {
    return 0;
  }
}
