import type { Client } from "@connectrpc/connect";
import type { SyncService } from "../../../gen/sealflow/v1/sync_pb.ts";
import { unsealRecord } from "../crypto.ts";
import type { SealingKey } from "../sealing-key.ts";
import type { Latch } from "./latch.ts";
import type { LocalState } from "./local-state.ts";
import type { ReplicaEvent, ReplicaRecord } from "./replica-events.ts";
import type { PendingPush, StoredRecord } from "./replica-storage.ts";

/** What the parts of a replica share. */
export interface ReplicaParts {
  readonly sync: Client<typeof SyncService>;
  readonly state: LocalState;
  readonly key: SealingKey | undefined;
  /** From 0 to below 1, for jitter. */
  readonly random: () => number;
  readonly emit: (event: ReplicaEvent) => void;
  /** Woken when there may be something to push. */
  readonly outbox: Latch;
  /**
   * Revisions, by nameKey, that were learnt from pushes: the feed may still bring older ones, which
   * were read before.
   */
  readonly aheadOfFeed: Map<string, number>;
}

type Sealed = Pick<StoredRecord, "type" | "entityId" | "version" | "deleted" | "encryptedData">;

/** @throws SealError when it does not open as that record, version and deletion */
export async function openSealed(sealed: Sealed, key: SealingKey | undefined): Promise<unknown> {
  const data = key === undefined ? sealed.encryptedData : await unsealRecord(sealed, key);
  return sealed.deleted ? undefined : data;
}

export function toReplicaRecord(
  record: Pick<StoredRecord, "type" | "entityId" | "version" | "deleted">,
  data: unknown,
  isPending: boolean,
): ReplicaRecord {
  const { type, entityId, version, deleted } = record;
  const seen = { type, entityId, version, isPending };
  return deleted ? { ...seen, deleted } : { ...seen, deleted, data };
}

/** @throws SealError when it was sealed with another key */
export async function openView(
  view: StoredRecord | PendingPush,
  key: SealingKey | undefined,
): Promise<ReplicaRecord> {
  return toReplicaRecord(view, await openSealed(view, key), "mutationId" in view);
}
