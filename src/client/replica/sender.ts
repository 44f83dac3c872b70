import { Code, ConnectError } from "@connectrpc/connect";
import {
  type PushResult,
  PushStatus,
  type SyncRecord,
} from "../../../gen/sealflow/v1/record_pb.ts";
import { isPermanent, pause, retryDelayMs } from "../backoff.ts";
import { reasonOf } from "../error-reason.ts";
import type { Conflicts } from "./conflicts.ts";
import { noRevision } from "./outbox.ts";
import { ReplicaError } from "./replica-error.ts";
import { openView, type ReplicaParts } from "./replica-parts.ts";
import { nameKey, type PendingPush, type StoredRecord } from "./replica-storage.ts";

const batchRecordsMax = 200;
const batchBytesMax = 2 * 1024 * 1024;
const answerMaxMs = 60_000;
const backoff = { firstMs: 500, maxMs: 30_000 };

/**
 * Sends what is in the outbox in its order, for as long as the signal is not aborted. Rejects when
 * the server has begun another history: what it answered says nothing about this one.
 */
export async function sendOutbox(
  parts: ReplicaParts,
  conflicts: Conflicts,
  signal: AbortSignal,
): Promise<void> {
  let countMax = batchRecordsMax;
  for (let failures = 0; !signal.aborted; ) {
    const batch = nextBatch(parts, conflicts, countMax);
    const [first] = batch;
    if (first === undefined) {
      await parts.outbox.wait(signal);
      continue;
    }
    try {
      await sendBatch(parts, { batch, conflicts, signal });
      failures = 0;
      countMax = Math.min(countMax * 2, batchRecordsMax);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ReplicaError) throw error;
      if (isAboutContent(error)) {
        // One bad record has the whole batch refused: find it.
        if (batch.length === 1) conflicts.hold(first, error);
        countMax = 1;
        continue;
      }
      failures = isPermanent(error) ? 30 : failures + 1;
      const delayMs = retryDelayMs(failures, backoff, { error, random: parts.random });
      parts.emit({ kind: "retrying", error, delayMs });
      await pause(delayMs, signal);
    }
  }
}

/** The first push of each record, while they fit one request. */
function nextBatch(
  { state }: ReplicaParts,
  conflicts: Conflicts,
  countMax: number,
): readonly PendingPush[] {
  const batch: PendingPush[] = [];
  const names = new Set<string>();
  let bytes = 0;
  for (const push of state.pushes) {
    if (names.has(nameKey(push)) || conflicts.isBlocked(push)) continue;
    // In UTF-8 a UTF-16 unit takes at most three bytes; what is sealed takes one each.
    bytes += push.encryptedData.length * (/^[\w.-]*$/.test(push.encryptedData) ? 1 : 3);
    if (batch.length > 0 && bytes > batchBytesMax) break;
    names.add(nameKey(push));
    batch.push(push);
    if (batch.length === countMax) break;
  }
  return batch;
}

async function sendBatch(
  parts: ReplicaParts,
  {
    batch,
    conflicts,
    signal,
  }: {
    readonly batch: readonly PendingPush[];
    readonly conflicts: Conflicts;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { sync, state } = parts;
  const records = batch.map(toPushRecord);
  const answer = await sync.pushState({ records }, { signal, timeoutMs: answerMaxMs });
  if (answer.epoch !== state.position.epoch) {
    throw new ReplicaError("EPOCH_CHANGED", "The server was restored from a backup meanwhile");
  }
  const outcomes = batch.map((push, i) => outcomeOf(push, answer.results[i]));
  await acknowledge(parts, conflicts, outcomes);
  for (const { push, conflict } of outcomes) {
    if (conflict === undefined) continue;
    conflicts.raise(push, conflict.reason, await wholeOf(parts, conflict.current, signal));
  }
}

/** What became of a push: the revision that it is stored as, or a conflict. */
type Outcome = { readonly push: PendingPush } & (
  | { readonly revision: number; readonly conflict?: never }
  | { readonly revision?: never; readonly conflict: PushResult }
);

/** @throws ConnectError when the server does not say */
function outcomeOf(push: PendingPush, result: PushResult | undefined): Outcome {
  if (result?.status === PushStatus.CONFLICT) return { push, conflict: result };
  const revision = Number(result?.record?.revision ?? 0);
  if (revision === 0) throw new ConnectError("The server answered without a result", Code.Internal);
  return { push, revision };
}

function toPushRecord(push: PendingPush) {
  const { type, entityId, encryptedData, version, deleted, mutationId } = push;
  const expectedRevision = BigInt(push.expectedRevision);
  return { type, entityId, encryptedData, version, deleted, mutationId, expectedRevision };
}

/** What was accepted is what the server has; what follows was made on it. */
async function acknowledge(
  { state, key, emit, aheadOfFeed }: ReplicaParts,
  conflicts: Conflicts,
  outcomes: readonly Outcome[],
): Promise<void> {
  const pushed: PendingPush[] = [];
  await state.change(() => {
    const records: StoredRecord[] = [];
    const pushes: PendingPush[] = [];
    for (const { push, revision } of outcomes) {
      if (revision === undefined) continue;
      const [first, next] = state.pushesOf(push);
      // Dropped meanwhile: the feed brings it, as another's.
      if (first?.mutationId !== push.mutationId) continue;
      pushed.push(push);
      if (revision > (state.record(push)?.revision ?? 0)) {
        records.push(toStored(push, revision));
        aheadOfFeed.set(nameKey(push), revision);
      }
      if (next !== undefined && next.expectedRevision !== noRevision) {
        pushes.push({ ...next, expectedRevision: revision });
      }
    }
    return { records, pushes, settled: pushed.map(({ order }) => order) };
  });
  for (const push of pushed) {
    conflicts.release(push);
    const record = { ...(await openView(push, key)), isPending: false };
    emit({ kind: "pushed", record });
  }
}

function toStored(
  { type, entityId, version, deleted, encryptedData }: PendingPush,
  revision: number,
) {
  return { type, entityId, version, deleted, encryptedData, revision };
}

/** The server's side of a conflict with its data. */
async function wholeOf(
  { sync }: ReplicaParts,
  current: SyncRecord | undefined,
  signal: AbortSignal,
): Promise<SyncRecord | undefined> {
  if (current === undefined || !current.dataOmitted) return current;
  const { type, entityId } = current;
  const { records } = await sync.pullState(
    { since: 0n, types: [type], entityIds: [entityId], includeDeleted: true },
    { signal, timeoutMs: answerMaxMs },
  );
  return records[0];
}

const contentReasons: readonly (string | undefined)[] = ["VALIDATION_ERROR", "PAYLOAD_TOO_LARGE"];

function isAboutContent(error: unknown): boolean {
  return contentReasons.includes(reasonOf(error)?.reason);
}
