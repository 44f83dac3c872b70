import type { SyncRecord } from "../../../gen/sealflow/v1/record_pb.ts";
import { SealError } from "../seal-error.ts";
import type { SealingKey } from "../sealing-key.ts";
import { changeOf, type Refusal, type RefusalCode } from "./replica-events.ts";
import { openSealed, type ReplicaParts, toReplicaRecord } from "./replica-parts.ts";
import { nameKey, type Position, type StoredRecord } from "./replica-storage.ts";
import { compareVersions, isVersion } from "./version.ts";

/** A record of the server, opened; or why it is not believed whatever the replica holds. */
export interface Incoming {
  readonly record: StoredRecord;
  /** Where it stands in the feed. */
  readonly cursor: number;
  readonly data?: unknown;
  readonly code?: RefusalCode;
}

/**
 * Takes up what the server sent, in one change with where to go on. What is not believed is told
 * and left out.
 */
export async function takeUp(
  { state, key, emit, aheadOfFeed }: ReplicaParts,
  messages: readonly SyncRecord[],
  position: Position,
): Promise<void> {
  const incoming = await openAll(messages, key);
  const told: (() => void)[] = [];
  await state.change(() => {
    const taken = new Map<string, StoredRecord>();
    for (const each of incoming) {
      const { record } = each;
      if ((aheadOfFeed.get(nameKey(record)) ?? 0) > record.revision) continue;
      aheadOfFeed.delete(nameKey(record));
      const held = taken.get(nameKey(record)) ?? state.record(record);
      const code = each.code ?? refusalOf(record, held);
      if (code !== undefined) {
        told.push(() => emit({ kind: "refused", refusal: toRefusal(record, code) }));
        continue;
      }
      taken.set(nameKey(record), record);
      const isNews = held === undefined ? !record.deleted : held.version !== record.version;
      if (!isNews || state.pushesOf(record).length > 0) continue;
      told.push(() => emit(changeOf(toReplicaRecord(record, each.data, false))));
    }
    const { cursor, epoch } = state.position;
    const hasMoved = cursor !== position.cursor || epoch !== position.epoch;
    return taken.size > 0 || hasMoved ? { position, records: [...taken.values()] } : undefined;
  });
  for (const tell of told) tell();
}

export function openAll(
  messages: readonly SyncRecord[],
  key: SealingKey | undefined,
): Promise<readonly Incoming[]> {
  return Promise.all(messages.map((message) => openIncoming(message, key)));
}

export async function openIncoming(
  message: SyncRecord,
  key: SealingKey | undefined,
): Promise<Incoming> {
  const { type, entityId, version, deleted, encryptedData } = message;
  const revision = Number(message.revision);
  const record = { type, entityId, version, deleted, revision, encryptedData };
  const cursor = Number(message.cursor);
  if (!isVersion(version)) return { record, cursor, code: "BAD_VERSION" };
  try {
    return { record, cursor, data: await openSealed(record, key) };
  } catch (error) {
    if (error instanceof SealError) return { record, cursor, code: error.code };
    throw error;
  }
}

/** Why a record does not follow the one that is held. */
export function refusalOf(
  record: StoredRecord,
  held: StoredRecord | undefined,
): RefusalCode | undefined {
  if (held === undefined) return undefined;
  const order = compareVersions(record.version, held.version);
  if (order > 0) return undefined;
  if (order < 0) return "VERSION_WENT_BACK";
  return isSame(record, held) ? undefined : "SAME_VERSION";
}

type Content = Pick<StoredRecord, "version" | "deleted" | "encryptedData">;

export function isSame(a: Content, b: Content): boolean {
  return a.version === b.version && a.deleted === b.deleted && a.encryptedData === b.encryptedData;
}

export function toRefusal(record: StoredRecord, code: RefusalCode): Refusal {
  const { type, entityId, version, deleted } = record;
  return { code, type, entityId, version, deleted };
}
