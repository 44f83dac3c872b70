import { type Incoming, isSame, openAll, refusalOf, toRefusal } from "./incoming.ts";
import type { LocalState } from "./local-state.ts";
import { noRevision } from "./outbox.ts";
import { ReplicaError } from "./replica-error.ts";
import { changeOf } from "./replica-events.ts";
import { type ReplicaParts, toReplicaRecord } from "./replica-parts.ts";
import {
  nameKey,
  type PendingPush,
  type StoredChange,
  type StoredRecord,
} from "./replica-storage.ts";
import { compareVersions, isVersion } from "./version.ts";

const answerMaxMs = 60_000;
/**
 * Pulls all that the server has, tombstones too, when it has lost what it had: a backup was
 * restored. What the replica holds in a greater version, or the server lacks, goes back to the
 * outbox; over what others have written since, it is a conflict. What they have brought to a
 * greater version stays as they have it. The position moves last, so that a crash has it done again.
 */
export async function pullAnew(parts: ReplicaParts, signal: AbortSignal): Promise<void> {
  const { sync, state, emit, aheadOfFeed } = parts;
  const before = state.pushCount;
  const seen = new Set<string>();
  let epoch: string | undefined;
  aheadOfFeed.clear();
  state.recoveries += 1;
  for (let cursor = 0n, hasMore = true; hasMore; ) {
    const request = { since: cursor, includeDeleted: true };
    const page = await sync.pullState(request, { signal, timeoutMs: answerMaxMs });
    epoch ??= page.epoch;
    if (page.epoch !== epoch) {
      throw new ReplicaError("EPOCH_CHANGED", "The server has begun another history meanwhile");
    }
    checkProgress(page, cursor);
    const incoming = await openAll(page.records, parts.key);
    for (const { record } of incoming) seen.add(nameKey(record));
    await meet(parts, incoming);
    ({ cursor, hasMore } = page);
    if (!hasMore) await finish(parts, seen, { cursor: Number(cursor), epoch });
  }
  emit({ kind: "restored", epoch: epoch ?? "", pushes: state.pushCount - before });
  parts.outbox.wake();
}

/** A server that has more but does not go on would be asked for ever. */
export function checkProgress(
  { cursor, hasMore }: { readonly cursor: bigint; readonly hasMore: boolean },
  since: bigint,
): void {
  if (hasMore && cursor <= since) {
    throw new ReplicaError("FEED_GAP", `The feed does not go on after ${since}`);
  }
}

/** What the server lacks is pushed again as new. */
async function finish(
  { state }: ReplicaParts,
  seen: ReadonlySet<string>,
  position: { readonly cursor: number; readonly epoch: string },
): Promise<void> {
  await state.change(() => {
    const lost = state.records.filter((record) => !seen.has(nameKey(record)));
    const changes = lost.map((record) => pushAgain(state, record, 0));
    return { ...joined(changes), removed: lost, position };
  });
}

/** One page of the server's records beside what is held. */
async function meet({ state, emit }: ReplicaParts, page: readonly Incoming[]): Promise<void> {
  const told: (() => void)[] = [];
  await state.change(() => {
    const changes = page.map((each) => {
      const { record, code } = each;
      const held = state.record(record);
      if (code !== undefined) {
        told.push(() => emit({ kind: "refused", refusal: toRefusal(record, code) }));
        return held === undefined ? {} : keep(state, record, held);
      }
      if (held !== undefined && refusalOf(record, held) !== undefined) {
        // Positions follow the clock: beyond the replica's own is what was written since.
        const isNew = each.cursor > state.position.cursor;
        const revision = isNew ? noRevision : record.revision;
        return { ...pushAgain(state, held, revision), records: [record] };
      }
      const isNews = held === undefined ? !record.deleted : !isSame(record, held);
      if (isNews && state.pushesOf(record).length === 0) {
        told.push(() => emit(changeOf(toReplicaRecord(record, each.data, false))));
      }
      // What was made on no record conflicts with one anyhow.
      if (held === undefined) return { records: [record] };
      const revision = isSame(record, held) ? record.revision : noRevision;
      return { pushes: rebase(state, held, revision), records: [record] };
    });
    return joined(changes);
  });
  for (const tell of told) tell();
}

/** The server has what is not believed: the held one stays, and goes there if it is greater. */
function keep(
  state: LocalState,
  { version, revision }: StoredRecord,
  held: StoredRecord,
): StoredChange {
  const records = [{ ...held, revision }];
  const isGreater = isVersion(version) && compareVersions(held.version, version) > 0;
  return isGreater
    ? { ...pushAgain(state, held, revision), records }
    : { pushes: rebase(state, held, noRevision), records };
}

/** What is held, before what was made on it. */
function pushAgain(state: LocalState, held: StoredRecord, revision: number): StoredChange {
  const pushes = state.pushesOf(held);
  const [first] = pushes;
  if (first !== undefined && isSame(first, held)) {
    return { pushes: [{ ...first, expectedRevision: revision }] };
  }
  const { type, entityId, version, deleted, encryptedData } = held;
  const again: PendingPush = {
    ...{ type, entityId, version, deleted, encryptedData, expectedRevision: revision },
    order: state.nextOrder(),
    mutationId: crypto.randomUUID(),
  };
  const later = pushes.map((push, i) => ({
    ...(i === 0 ? rebased(push, held, revision) : push),
    order: state.nextOrder(),
  }));
  return { settled: pushes.map(({ order }) => order), pushes: [again, ...later] };
}

/** The first push of a record, on another revision if it was made on what is held. */
function rebase(
  state: LocalState,
  held: StoredRecord,
  expectedRevision: number,
): readonly PendingPush[] {
  const [first] = state.pushesOf(held);
  return first === undefined ? [] : [rebased(first, held, expectedRevision)];
}

function rebased(push: PendingPush, held: StoredRecord, expectedRevision: number): PendingPush {
  const isOnHeld = push.expectedRevision === held.revision;
  return { ...push, expectedRevision: isOnHeld ? expectedRevision : noRevision };
}

function joined(changes: readonly StoredChange[]): StoredChange {
  return {
    records: changes.flatMap(({ records }) => records ?? []),
    pushes: changes.flatMap(({ pushes }) => pushes ?? []),
    settled: changes.flatMap(({ settled }) => settled ?? []),
  };
}
