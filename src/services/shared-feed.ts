import { cursorOf, type FeedItem } from "../domain/record.ts";
import type { FeedPage, FeedQuery, RecordStore } from "../storage/port.ts";
import type { FeedBells } from "./wakeups.ts";

type Records = Pick<RecordStore, "readFeed">;
type Bells = Pick<FeedBells, "isWakingSeveral" | "watch">;
type Query = Omit<FeedQuery, "after">;

/** Reads what lies after a position. */
export type ReadAfter = (after: number) => Promise<FeedPage>;

/** Longer keys, of filters that name many entities, are hardly shared and not worth keeping. */
const keyLengthMax = 1024;
/** Of all owners together; whoever comes when so many are kept reads alone. */
const endsMax = 32;
const keptItemsMax = 512;
const keptCharsMax = 1024 * 1024;

/**
 * Reads of feeds for those who follow them. When a feed moves on, all who follow it by the same query
 * ask for about the same: so its end is read once, and they get the same objects. It is kept while
 * several followers are being woken and no longer.
 */
export class SharedFeed {
  readonly #records: Records;
  readonly #bells: Bells;
  /** By owner, then by query. */
  readonly #ends = new Map<string, Map<string, FeedEnd>>();

  constructor(records: Records, bells: Bells) {
    this.#records = records;
    this.#bells = bells;
    bells.watch({
      rang: (owner) => {
        for (const end of this.#ends.get(owner)?.values() ?? []) end.moveOn();
      },
      quiet: (owner) => void this.#ends.delete(owner),
    });
  }

  /** What one follower reads by. */
  follow(owner: string, query: Query): ReadAfter {
    const { tombstonesAfter = 0, ...settled } = query;
    const alone: ReadAfter = (after) => this.#records.readFeed(owner, { ...query, after });
    const key = JSON.stringify({ ...settled, kinds: [...query.kinds] });
    if (!staysWithin(query) || key.length > keyLengthMax) return alone;
    // Whoever shares is past all that a snapshot leaves out.
    const read: ReadAfter = (after) => this.#records.readFeed(owner, { ...settled, after });
    return (after) => {
      const isShared = after >= tombstonesAfter && this.#bells.isWakingSeveral(owner);
      const end = isShared ? this.#end(owner, key, read) : undefined;
      return end === undefined ? alone(after) : end.read(after);
    };
  }

  #end(owner: string, key: string, read: ReadAfter): FeedEnd | undefined {
    const ends = this.#ends.get(owner) ?? new Map<string, FeedEnd>();
    const kept = ends.get(key);
    if (kept !== undefined || this.#isFull()) return kept;
    const end = new FeedEnd(read);
    this.#ends.set(owner, ends.set(key, end));
    return end;
  }

  #isFull(): boolean {
    let count = 0;
    for (const ends of this.#ends.values()) count += ends.size;
    return count >= endsMax;
  }
}

/**
 * Whether what a query has found is found by it for ever, in a newer state. (A record leaves a query
 * for tombstones alone, or for other agents' records alone, and nothing would say so.)
 */
function staysWithin({ withRecords, withTombstones, exceptAgentId }: Query): boolean {
  return withRecords === withTombstones && exceptAgentId === undefined;
}

interface Kept {
  readonly name: string;
  readonly item: FeedItem;
}

/** The end of a feed: all that lay between two positions when it was read, some of it since then. */
class FeedEnd {
  readonly #read: ReadAfter;
  /** Both positions as one asks for them: the items lie after the first, up to the second. */
  #from = Number.POSITIVE_INFINITY;
  #to = 0;
  #kept: readonly Kept[] = [];
  /** How often the feed has moved on, and how often it had when it was read to its head. */
  #moves = 0;
  #readAt = 0;
  /** Reads follow one another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(read: ReadAfter) {
    this.#read = read;
  }

  moveOn(): void {
    this.#moves += 1;
  }

  read(after: number): Promise<FeedPage> {
    const page = this.#last.then(() => this.#page(after));
    this.#last = page.catch(() => {});
    return page;
  }

  async #page(after: number): Promise<FeedPage> {
    const isWithin = this.#from <= after && after <= this.#to;
    if (isWithin && this.#readAt === this.#moves) return this.#since(after);
    const moves = this.#moves;
    const page = await this.#read(isWithin ? this.#to : after);
    if (!isWithin && page.hasMore) return page;
    if (!isWithin) [this.#from, this.#kept] = [after, []];
    this.#append(page);
    if (!page.hasMore) this.#readAt = moves;
    // What this one asked for may be more than is kept.
    return after < this.#from ? this.#read(after) : this.#since(after);
  }

  /** Keeps the last of all that was read, each thing in its newest state. */
  #append({ items, cursor }: FeedPage): void {
    const news = items.map((item) => ({ name: nameOf(item), item }));
    const changed = new Set(news.map(({ name }) => name));
    const all = [...this.#kept.filter(({ name }) => !changed.has(name)), ...news];
    let first = all.length;
    for (let chars = 0; first > 0 && all.length - first < keptItemsMax; first -= 1) {
      chars += all[first - 1]?.item.record?.encryptedData.length ?? 0;
      if (chars > keptCharsMax) break;
    }
    const dropped = all[first - 1];
    if (dropped !== undefined) this.#from = cursorOf(dropped.item);
    this.#kept = all.slice(first);
    this.#to = cursor;
  }

  /** What a follower gets that has come so far. */
  #since(after: number): FeedPage {
    const first = this.#kept.findLastIndex(({ item }) => cursorOf(item) <= after) + 1;
    const items = this.#kept.slice(first).map(({ item }) => item);
    return { items, cursor: this.#to, hasMore: this.#readAt !== this.#moves, head: this.#to };
  }
}

/** The same for every state of one thing. */
function nameOf({ record, change }: FeedItem): string {
  return record === undefined
    ? `${change.kind} ${change.id}`
    : JSON.stringify([record.type, record.entityId]);
}
