import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import type { Clock } from "../../domain/clock.ts";
import type { Sealer } from "../sealing.ts";
import type { Ledger } from "./ledger.ts";
import type { Writer } from "./writer.ts";

/** What the parts of the store are made of. One connection: prepared statements run inside writes. */
export interface SqliteContext {
  readonly db: BetterSQLite3Database;
  readonly writer: Writer;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly sealer: Sealer;
  /** 128 random bits, base64url. */
  newToken(): string;
}
