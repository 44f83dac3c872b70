import type { Database } from "better-sqlite3";

/** A log of so many pages of 4 KiB is to begin anew: 32 MiB. */
export const longLogPages = 8_000;

/** In pages. */
export interface LogState {
  readonly length: number;
  /** What is not in the database's file yet. */
  readonly left: number;
}

/**
 * Copies what the log holds into the database's file, without waiting for anyone: what somebody still
 * reads by the file stays. Nothing is lost where it fails, for what the log holds is durable there.
 */
export function copyLog(connection: Database): LogState {
  try {
    const [result] = connection.pragma("wal_checkpoint(PASSIVE)") as [Result];
    return { length: result.log, left: result.log - result.checkpointed };
  } catch {
    return { length: 0, left: 0 };
  }
}

/** Both -1 where another connection copies at the moment. */
interface Result {
  readonly log: number;
  readonly checkpointed: number;
}
