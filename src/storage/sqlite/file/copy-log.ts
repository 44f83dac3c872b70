import type { Database } from "better-sqlite3";

/** A log of so many pages of 4 KiB is to begin anew: 32 MiB. */
export const longLogPages = 8_000;

/**
 * Copies what the log holds into the database's file, without waiting for anyone, and answers the
 * log's length in pages; 0 when it fails. Nothing is lost then: what the log holds is durable there.
 */
export function copyLog(connection: Database): number {
  try {
    const [result] = connection.pragma("wal_checkpoint(PASSIVE)") as [{ readonly log: number }];
    return result.log;
  } catch {
    return 0;
  }
}
