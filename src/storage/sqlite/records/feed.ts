import type { FeedItem } from "../../../domain/record.ts";
import type { FeedPage, FeedQuery } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import { createChangeLines } from "./feed-changes.ts";
import { inFeedOrder, type Place } from "./feed-lines.ts";
import { createFeedRecords } from "./feed-records.ts";

/** So much of a page, above its payloads, is left for ids, versions and the rest. */
const namesShare = 1 / 4;
/** What an item takes in a message beside its strings. */
const itemBytes = 80;
/** A filter may drop so many items in one call; the caller goes on from the last of them. */
const droppedMax = 4_000;

/** The promise of `readFeed`; only to be used between two writes. */
export function createFeedReader(
  context: SqliteContext,
): (owner: string, query: FeedQuery) => FeedPage {
  const records = createFeedRecords(context.db);
  const changeLines = createChangeLines(context);
  return (owner, query) => {
    const head = context.ledger.head(owner);
    if (query.after >= head) return { items: [], cursor: head, hasMore: false, head };
    const lines = [...records.linesOf(owner, query), ...changeLines(owner, query)];
    const { places, stoppedAt } = takePage(inFeedOrder(lines), query);
    return {
      items: toItems(places, records.read(owner, places)),
      cursor: stoppedAt ?? head,
      hasMore: stoppedAt !== null,
      head,
    };
  };
}

interface TakenPage {
  readonly places: readonly Place[];
  /** The last place looked at; null when nothing is left. */
  readonly stoppedAt: number | null;
}

function takePage(feed: Iterable<Place>, { after, limit, bytesMax }: FeedQuery): TakenPage {
  const places: Place[] = [];
  let [dataBytes, allBytes, dropped, last] = [0, 0, 0, after];
  for (const place of feed) {
    if (place.isWanted) {
      dataBytes += place.dataBytes;
      allBytes += place.dataBytes + place.nameBytes + itemBytes;
      const isFull =
        places.length >= limit || dataBytes > bytesMax || allBytes > bytesMax * (1 + namesShare);
      if (isFull && places.length > 0) return { places, stoppedAt: last };
      places.push(place);
    } else {
      dropped += 1;
      if (dropped > droppedMax) return { places, stoppedAt: last };
    }
    last = place.seq;
  }
  return { places, stoppedAt: null };
}

function toItems(
  places: readonly Place[],
  records: ReadonlyMap<number, FeedItem>,
): readonly FeedItem[] {
  return places.map(({ seq, change }) => {
    const item = change === null ? records.get(seq) : { change };
    if (item === undefined) throw new Error(`no record at ${seq}`);
    return item;
  });
}
