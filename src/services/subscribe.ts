import { setImmediate } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  GoingAwayReason,
  type SubscribeRequest,
  type SyncUpdateSchema,
  UpdateKind,
} from "../../gen/sealflow/v1/sync_pb.ts";
import { readSince, type Since } from "../domain/cursor.ts";
import { ServiceError } from "../domain/errors.ts";
import { limits, spans } from "../domain/limits.ts";
import { cursorOf, type FeedItem } from "../domain/record.ts";
import type { FeedPage, FeedQuery } from "../storage/port.ts";
import type { Burst, Call, ServiceParts } from "./call.ts";
import { waitMs } from "./execute.ts";
import { checkCursor, feedFilter } from "./feed-filter.ts";
import { changeKinds, toChange, toRecord } from "./record-messages.ts";
import type { SharedFeed } from "./shared-feed.ts";
import { Waiter } from "./wait.ts";

type Update = MessageInitShape<typeof SyncUpdateSchema>;
type Updates = AsyncGenerator<Burst<Update>>;
type ItemUpdate = Update & { readonly prevCursor: bigint };

const streamPageSize = 256;
const streamPageBytes = 1024 * 1024;
/** So much data goes out at once. */
const burstBytesMax = 64 * 1024;

/** What all streams share. */
export interface StreamParts {
  readonly streams: OpenStreams;
  readonly feed: SharedFeed;
}

/** How many streams each owner has open. */
export class OpenStreams {
  readonly #open = new Map<string, number>();

  /** Throws RATE_LIMITED when the owner has too many. */
  enter(owner: string): Disposable {
    const open = this.#open.get(owner) ?? 0;
    if (open >= limits.streamsPerOwnerMax) throw tooManyStreams();
    this.#open.set(owner, open + 1);
    return { [Symbol.dispose]: () => this.#leave(owner) };
  }

  #leave(owner: string): void {
    const open = (this.#open.get(owner) ?? 1) - 1;
    if (open === 0) this.#open.delete(owner);
    else this.#open.set(owner, open);
  }
}

/**
 * The feed as it happens: a loop whose only state is its cursor. It listens for changes before it
 * reads, reads what lies after the cursor, sends it, and waits; a wake-up carries no data. Whoever
 * reads slowly holds the loop, and one page of memory.
 */
export async function* subscribe(
  parts: ServiceParts & StreamParts,
  call: Call,
  request: SubscribeRequest,
): Updates {
  const since = request.since === undefined ? undefined : readSince(Number(request.since));
  const filter = feedFilter(call, request, request.excludeOwn && since?.kind !== "all");
  const waiter = new Waiter(call).with(parts.streams.enter(call.owner)).onAbort(parts.stopping);
  try {
    const ending = watchTheEnd(parts, call, waiter);
    waiter.with(parts.wakeups.feeds.listen(call.owner, waiter.wake));
    const head = await parts.store.records.head(call.owner);
    if (since !== undefined) checkCursor(since, head);
    const { after, ...page } = start(since, head);
    const heartbeatMs = waitMs(request.heartbeat, spans.streamHeartbeatMaxMs);
    yield* follow(parts, call, {
      after,
      read: parts.feed.follow(call.owner, { ...filter, ...page }),
      waiter,
      ending,
      heartbeatMs: heartbeatMs ?? spans.streamHeartbeatMs,
    });
  } finally {
    waiter[Symbol.dispose]();
  }
}

interface Following {
  readonly after: number;
  read(after: number): Promise<FeedPage>;
  readonly waiter: Waiter;
  readonly ending: { readonly reason: GoingAwayReason | undefined };
  readonly heartbeatMs: number;
}

async function* follow(
  { store }: ServiceParts,
  call: Call,
  { after, read, waiter, ending, heartbeatMs }: Following,
): Updates {
  const stream = new UpdateChain(after);
  yield [stream.ready(store.epoch)];
  let isUpToDate = false;
  while (!call.signal.aborted && ending.reason === undefined) {
    const page = await read(stream.cursor);
    yield* stream.bursts(page.items);
    stream.skipTo(page.cursor);
    if (page.hasMore) {
      // A filter that drops everything must not keep the loop from the others.
      if (page.items.length === 0) await setImmediate();
      continue;
    }
    if (!isUpToDate) yield [stream.control(UpdateKind.UP_TO_DATE)];
    isUpToDate = true;
    // (News that the filter drops is no sign of life: it puts off no heartbeat.)
    if (stream.silentMs() >= heartbeatMs) yield [stream.control(UpdateKind.HEARTBEAT)];
    await waiter.wait(heartbeatMs - stream.silentMs());
  }
  if (ending.reason !== undefined) yield [stream.goingAway(store.epoch, ending.reason)];
}

/** From where to read, and which tombstones a snapshot leaves out. */
function start(
  since: Since | undefined,
  head: number,
): Pick<FeedQuery, "after" | "limit" | "bytesMax" | "tombstonesAfter"> {
  const page = { limit: streamPageSize, bytesMax: streamPageBytes };
  if (since === undefined) return { ...page, after: head };
  if (since.kind === "all") return { ...page, after: 0, tombstonesAfter: head };
  // A time that is still to come means from now on, not never.
  return { ...page, after: Math.min(since.after, head) };
}

/** Why the stream must end, once it must. */
function watchTheEnd(
  { stopping }: ServiceParts,
  call: Call,
  waiter: Waiter,
): { readonly reason: GoingAwayReason | undefined } {
  let tokenEnd: GoingAwayReason | undefined;
  waiter.with(
    call.onTokenEnd((reason) => {
      tokenEnd = tokenEnds[reason];
      waiter.wake();
    }),
  );
  return {
    get reason() {
      return stopping.aborted ? GoingAwayReason.STOPPING : tokenEnd;
    },
  };
}

const tokenEnds = {
  expired: GoingAwayReason.TOKEN_EXPIRED,
  revoked: GoingAwayReason.TOKEN_REVOKED,
} as const;

/** The last message made of an item: who follows in step is told the same. */
const lastUpdates = new WeakMap<FeedItem, ItemUpdate>();

/** Chains each message to the one before by `prev_cursor`. */
class UpdateChain {
  cursor: number;
  #sent: number;
  #sentMs = performance.now();

  constructor(cursor: number) {
    this.cursor = cursor;
    this.#sent = cursor;
  }

  ready(epoch: string): Update {
    return { ...this.control(UpdateKind.READY), epoch };
  }

  *bursts(items: readonly FeedItem[]): Generator<Burst<Update>> {
    let burst: Update[] = [];
    let bytes = 0;
    for (const item of items) {
      const itemBytes = item.record?.encryptedData.length ?? 0;
      if (burst.length > 0 && bytes + itemBytes > burstBytesMax) {
        yield burst;
        [burst, bytes] = [[], 0];
      }
      burst.push(this.#item(item));
      bytes += itemBytes;
    }
    if (burst.length > 0) yield burst;
  }

  #item(item: FeedItem): Update {
    this.cursor = cursorOf(item);
    const last = lastUpdates.get(item);
    const link = this.control(kindOf(item));
    if (last !== undefined && last.prevCursor === link.prevCursor) return last;
    const update =
      item.record === undefined
        ? { ...link, change: toChange(item.change) }
        : { ...link, record: toRecord(item.record) };
    lastUpdates.set(item, update);
    return update;
  }

  /** Past what the filters left out. */
  skipTo(cursor: number): void {
    this.cursor = Math.max(this.cursor, cursor);
  }

  control(kind: UpdateKind) {
    const prevCursor = this.#sent;
    this.#sent = this.cursor;
    this.#sentMs = performance.now();
    return { kind, cursor: BigInt(this.cursor), prevCursor: BigInt(prevCursor) };
  }

  /** Since the last message. */
  silentMs(): number {
    return performance.now() - this.#sentMs;
  }

  goingAway(epoch: string, reason: GoingAwayReason): Update {
    return { ...this.control(UpdateKind.GOING_AWAY), epoch, reason };
  }
}

function kindOf({ record, change }: FeedItem): UpdateKind {
  if (record === undefined) return changeKinds[change.kind];
  return record.deleted ? UpdateKind.STATE_DELETED : UpdateKind.STATE_UPSERTED;
}

function tooManyStreams(): ServiceError {
  return new ServiceError("RATE_LIMITED", `${limits.streamsPerOwnerMax} streams are open`, {
    details: { limit: "streams" },
    retryAfterMs: 1000,
  });
}
