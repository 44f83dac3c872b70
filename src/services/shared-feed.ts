import { cursorOf, type FeedItem } from "../domain/record.ts";
import type { FeedPage, FeedQuery, RecordStore } from "../storage/port.ts";
import type { FeedBells } from "./wakeups.ts";

type Records = Pick<RecordStore, "readFeed">;
type Bells = Pick<FeedBells, "isWaking" | "watch">;

/** Reads what lies after a position. */
export type ReadAfter = (after: number) => Promise<FeedPage>;

/** Longer keys, of filters that name many entities, are hardly shared and not worth keeping. */
const keyLengthMax = 1024;
const keptItemsMax = 512;
const keptBytesMax = 1024 * 1024;

/**
 * Reads of feeds for those who follow them. When a feed moves on, all who follow it by the same query
 * ask for about the same: so its end is read once, and they get the same objects. It is kept while
 * followers are being woken and no longer.
 */
export class SharedFeed {
  readonly #records: Records;
  readonly #bells: Bells;
  readonly #ends = new Map<string, FeedEnd>();

  constructor(records: Records, bells: Bells) {
    this.#records = records;
    this.#bells = bells;
    bells.watch({
      rang: (owner) => {
        for (const end of this.#ends.values()) if (end.owner === owner) end.moveOn();
      },
      quiet: () => this.#ends.clear(),
    });
  }

  /** What one follower reads by. */
  follow(owner: string, query: Omit<FeedQuery, "after">): ReadAfter {
    const { tombstonesAfter = 0, ...settled } = query;
    const key = JSON.stringify([owner, { ...settled, kinds: [...query.kinds] }]);
    const read: ReadAfter = (after) => this.#records.readFeed(owner, { ...query, after });
    if (key.length > keyLengthMax) return read;
    return (after) => {
      // A snapshot is each follower's own.
      if (!this.#bells.isWaking || after < tombstonesAfter) return read(after);
      const end = this.#ends.get(key) ?? new FeedEnd(owner, read);
      this.#ends.set(key, end);
      return end.read(after);
    };
  }
}

/** The end of a feed: all that lay between two positions when it was read, some of it since then. */
class FeedEnd {
  readonly owner: string;
  readonly #read: ReadAfter;
  /** Both positions as one asks for them: the items lie after the first, up to the second. */
  #from = Number.POSITIVE_INFINITY;
  #to = 0;
  #items: readonly FeedItem[] = [];
  /** How often the feed has moved on, and how often it had when it was read to its head. */
  #moves = 0;
  #readAt = 0;
  /** Reads follow one another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(owner: string, read: ReadAfter) {
    this.owner = owner;
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
    if (!isWithin) [this.#from, this.#items] = [after, []];
    this.#append(page);
    if (!page.hasMore) this.#readAt = moves;
    // What this one asked for may be more than is kept.
    return after < this.#from ? this.#read(after) : this.#since(after);
  }

  /** Keeps the last of all that was read. */
  #append({ items, cursor }: FeedPage): void {
    const all = [...this.#items, ...items];
    let first = all.length;
    for (let bytes = 0; first > 0 && all.length - first < keptItemsMax; first -= 1) {
      bytes += all[first - 1]?.record?.encryptedData.length ?? 0;
      if (bytes > keptBytesMax) break;
    }
    const dropped = all[first - 1];
    if (dropped !== undefined) this.#from = cursorOf(dropped);
    this.#items = all.slice(first);
    this.#to = cursor;
  }

  /** What a follower gets that has come so far: perhaps an item that has a newer one by now. */
  #since(after: number): FeedPage {
    const first = this.#items.findLastIndex((item) => cursorOf(item) <= after) + 1;
    const hasMore = this.#readAt !== this.#moves;
    return { items: this.#items.slice(first), cursor: this.#to, hasMore, head: this.#to };
  }
}
