import type { PushRecord, PushStateRequest } from "../../gen/sealflow/v1/record_pb.ts";
import type { PullStateRequest, SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { readSince, type Since } from "../domain/cursor.ts";
import { invalid } from "../domain/errors.ts";
import { limits, spans } from "../domain/limits.ts";
import type { RecordDraft } from "../domain/record.ts";
import type { FeedPage, FeedQuery } from "../storage/port.ts";
import type { Call, Handlers, ServiceParts } from "./call.ts";
import { waitMs } from "./execute.ts";
import { checkCursor, feedFilter } from "./feed-filter.ts";
import { toTimestamp } from "./messages.ts";
import {
  pushStatuses,
  toChange,
  toPushResults,
  toRecord,
  toRecordWithoutData,
} from "./record-messages.ts";
import { SharedFeed } from "./shared-feed.ts";
import { OpenStreams, subscribe } from "./subscribe.ts";
import { withWaiter } from "./wait.ts";

/** State that is pushed, pulled and streamed. */
export function syncHandlers(parts: ServiceParts): Handlers<typeof SyncService> {
  const { store, wakeups, clock } = parts;
  const shared = { streams: new OpenStreams(), feed: new SharedFeed(store.records, wakeups.feeds) };
  return {
    async pushState(request, { owner, agentId }) {
      const drafts = draftsOf(request);
      const isSingle = request.records.length === 0;
      const batchMode = request.atomic ? "atomic" : "each";
      const { result, touched } = await store.records.pushRecords(owner, {
        agentId,
        drafts,
        mode: isSingle ? "single" : batchMode,
      });
      wakeups.announce(touched);
      const [outcome] = result;
      if (!isSingle) return { results: toPushResults(result), epoch: store.epoch };
      if (outcome?.status === "conflict" || outcome === undefined) throw new Error("no outcome");
      return {
        status: pushStatuses[outcome.status],
        record: toRecordWithoutData(outcome.record),
        epoch: store.epoch,
      };
    },

    async pullState(request, call) {
      const page = await pull(parts, call, request);
      return {
        records: page.items.flatMap(({ record }) => (record === undefined ? [] : toRecord(record))),
        changes: page.items.flatMap(({ change }) => (change === undefined ? [] : toChange(change))),
        cursor: BigInt(page.cursor),
        hasMore: page.hasMore,
        serverTime: toTimestamp(clock.wallUs()),
        epoch: store.epoch,
      };
    },

    subscribe: (request, call) => subscribe({ ...parts, ...shared }, call, request),
  };
}

/** The records of a push, one form or the other. Throws VALIDATION_ERROR for doubles. */
function draftsOf(request: PushStateRequest): readonly RecordDraft[] {
  if (request.records.length === 0) return [toDraft(request)];
  const entities = new Set<string>();
  const mutations = new Set<string>();
  for (const [i, { type, entityId, mutationId }] of request.records.entries()) {
    const entity = JSON.stringify([type, entityId]);
    if (entities.has(entity)) throw invalid(`records[${i}].entity_id`, "must not come twice");
    entities.add(entity);
    if (mutationId === "") continue;
    if (mutations.has(mutationId))
      throw invalid(`records[${i}].mutation_id`, "must not come twice");
    mutations.add(mutationId);
  }
  return request.records.map(toDraft);
}

function toDraft(record: PushStateRequest | PushRecord): RecordDraft {
  const { type, entityId, encryptedData, version, deleted, mutationId, expectedRevision } = record;
  return {
    ...{ type, entityId, encryptedData, version, deleted, mutationId },
    ...(expectedRevision === undefined ? {} : { expectedRevision: Number(expectedRevision) }),
  };
}

async function pull(parts: ServiceParts, call: Call, request: PullStateRequest): Promise<FeedPage> {
  const since = readSince(Number(request.since));
  const query = pullQuery(call, request, since);
  const untilMs = performance.now() + pullWaitMs(call, request);
  return withWaiter(call, async (waiter) => {
    waiter.onAbort(parts.stopping).with(parts.wakeups.feeds.listen(call.owner, waiter.wake));
    let page = await parts.store.records.readFeed(call.owner, query);
    checkCursor(since, page.head);
    while (page.items.length === 0 && !page.hasMore && !call.signal.aborted) {
      const hasNews = await waiter.wait(untilMs - performance.now());
      if (!hasNews || parts.stopping.aborted) break;
      // From where the last look ended: what the filter dropped is not looked at again.
      const after = Math.max(query.after, page.cursor);
      page = await parts.store.records.readFeed(call.owner, { ...query, after });
    }
    return page;
  });
}

function pullQuery(call: Call, request: PullStateRequest, since: Since): FeedQuery {
  const isFull = since.kind === "all";
  const filter = feedFilter(call, request, request.excludeOwn && !isFull);
  return {
    ...filter,
    after: isFull ? 0 : since.after,
    withTombstones: filter.withTombstones && (request.includeDeleted ?? !isFull),
    limit: Math.min(request.limit ?? Number.MAX_SAFE_INTEGER, pullLimitMax(request)),
    bytesMax: limits.pageBytesMax,
  };
}

/** A client that does not page gets all that fits; one that asks gets at most 1,000. */
function pullLimitMax({ limit }: PullStateRequest): number {
  return limit === undefined ? Number.MAX_SAFE_INTEGER : limits.pullRecordsMax;
}

function pullWaitMs(call: Call, { wait }: PullStateRequest): number {
  const left = (call.timeLeftMs() ?? Infinity) - spans.deadlineMarginMs;
  return Math.min(waitMs(wait, spans.pullWaitMaxMs) ?? 0, left);
}
