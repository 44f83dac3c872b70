import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { idempotencyConflict } from "../../domain/errors.ts";
import type { RequestKey } from "../port.ts";
import { request } from "./schema.ts";

/** Where a request id counts: the same id elsewhere is another one. */
export interface RequestScope {
  readonly owner: string;
  readonly rpc: string;
  /** The id that the call is about; empty for none. */
  readonly target: string;
}

/** Request ids that were used. Only to be used inside a write. */
export interface Requests {
  /**
   * The id of what the same request made before; null when it is new, or has no key. Throws
   * IDEMPOTENCY_CONFLICT when it had other content.
   */
  find(scope: RequestScope, key: RequestKey | undefined): string | null;
  /** Remembers what the request made; nothing without a key. */
  keep(scope: RequestScope, key: RequestKey | undefined, objectId: string): void;
}

export function createRequests(db: BetterSQLite3Database): Requests {
  const readRequest = db
    .select({ fingerprint: request.fingerprint, objectId: request.objectId })
    .from(request)
    .where(
      sql`${request.owner} = ${sql.placeholder("owner")}
        AND ${request.rpc} = ${sql.placeholder("rpc")}
        AND ${request.target} = ${sql.placeholder("target")}
        AND ${request.requestId} = ${sql.placeholder("requestId")}`,
    )
    .prepare();
  const insertRequest = db
    .insert(request)
    .values({
      owner: sql.placeholder("owner"),
      rpc: sql.placeholder("rpc"),
      target: sql.placeholder("target"),
      requestId: sql.placeholder("requestId"),
      fingerprint: sql.placeholder("fingerprint"),
      objectId: sql.placeholder("objectId"),
    })
    .prepare();

  return {
    find({ owner, rpc, target }, key) {
      if (key === undefined) return null;
      const known = readRequest.get({ owner, rpc, target, requestId: key.id });
      if (known === undefined) return null;
      if (known.fingerprint !== key.fingerprint) throw idempotencyConflict(key.id);
      return known.objectId;
    },
    keep({ owner, rpc, target }, key, objectId) {
      if (key === undefined) return;
      const { id: requestId, fingerprint } = key;
      insertRequest.run({ owner, rpc, target, requestId, fingerprint, objectId });
    },
  };
}
