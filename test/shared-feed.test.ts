import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cursorOf, type FeedItem } from "../src/domain/record.ts";
import { type ReadAfter, SharedFeed } from "../src/services/shared-feed.ts";
import type { FeedWatcher } from "../src/services/wakeups.ts";
import type { FeedPage, FeedQuery } from "../src/storage/port.ts";

const query = {
  limit: 4,
  bytesMax: 1024 * 1024,
  withRecords: true,
  withTombstones: true,
  kinds: new Set<never>(),
  types: [],
  entityIds: [],
};

/** A feed that keeps the newest change of each entity, and the bells of its followers. */
class Feed {
  isWaking = true;
  reads = 0;
  head = 0;
  readonly #items = new Map<string, FeedItem>();
  readonly #watchers: FeedWatcher[] = [];

  watch(watcher: FeedWatcher): void {
    this.#watchers.push(watcher);
  }

  push(entityId: string, encryptedData = ""): void {
    this.head += 1;
    const record = {
      ...{ type: "note", entityId, encryptedData, version: "1", deleted: false },
      ...{ revision: 1, cursor: this.head, agentId: "a", createdUs: 0, updatedUs: 0 },
    };
    this.#items.delete(entityId);
    this.#items.set(entityId, { record });
    for (const { rang } of this.#watchers) rang("me");
  }

  quiet(): void {
    for (const { quiet } of this.#watchers) quiet();
  }

  async readFeed(_owner: string, { after, limit }: FeedQuery): Promise<FeedPage> {
    this.reads += 1;
    const later = [...this.#items.values()].filter((item) => cursorOf(item) > after);
    const items = later.slice(0, limit);
    const last = items.at(-1);
    const hasMore = later.length > limit;
    const cursor = hasMore && last !== undefined ? cursorOf(last) : this.head;
    return { items, cursor, hasMore, head: this.head };
  }

  newest(): ReadonlyMap<string, number> {
    return new Map([...this.#items].map(([id, item]) => [id, cursorOf(item)]));
  }
}

/** Keeps the last position it has seen of each entity. */
class Follower {
  readonly #read: ReadAfter;
  cursor: number;
  readonly seen = new Map<string, number>();

  constructor(read: ReadAfter, cursor: number) {
    this.#read = read;
    this.cursor = cursor;
  }

  /** False once nothing more is there. */
  async step(): Promise<boolean> {
    const { items, cursor, hasMore } = await this.#read(this.cursor);
    let last = this.cursor;
    for (const item of items) {
      expect(cursorOf(item)).toBeGreaterThan(last);
      last = cursorOf(item);
      this.seen.set(item.record?.entityId ?? "", last);
    }
    expect(cursor).toBeGreaterThanOrEqual(last);
    this.cursor = cursor;
    return hasMore;
  }

  async catchUp(): Promise<void> {
    while (await this.step());
  }
}

const steps = fc.array(
  fc.oneof(
    {
      arbitrary: fc.record({ push: fc.constantFrom("a", "b", "c", "d", "e", "f", "g") }),
      weight: 5,
    },
    { arbitrary: fc.record({ pushLarge: fc.constantFrom("a", "h", "i") }), weight: 1 },
    { arbitrary: fc.record({ read: fc.nat(3) }), weight: 5 },
    { arbitrary: fc.record({ readAtOnce: fc.nat(3) }), weight: 2 },
    { arbitrary: fc.constant({ quiet: true }), weight: 1 },
    { arbitrary: fc.record({ isWaking: fc.boolean() }), weight: 1 },
  ),
  { maxLength: 120 },
);
const large = "x".repeat(400 * 1024);

describe("followers of a feed", () => {
  test("see the newest of every entity, in order, however they take turns", async () => {
    const history = fc.asyncProperty(steps, async (taken) => {
      const feed = new Feed();
      const shared = new SharedFeed(feed, feed);
      const followers = Array.from({ length: 4 }, () => {
        return new Follower(shared.follow("me", query), 0);
      });
      const late: Promise<unknown>[] = [];
      for (const step of taken) {
        if ("push" in step) feed.push(step.push);
        else if ("pushLarge" in step) feed.push(step.pushLarge, large);
        else if ("read" in step) await followers[step.read]?.step();
        else if ("readAtOnce" in step) {
          // All begin before any has ended, and more is pushed meanwhile.
          late.push(Promise.all(followers.slice(step.readAtOnce).map((one) => one.step())));
          feed.push("z");
          await Promise.all(late);
        } else if ("quiet" in step) feed.quiet();
        else feed.isWaking = step.isWaking;
      }
      for (const follower of followers) {
        await follower.catchUp();
        expect(follower.cursor).toBe(feed.head);
        expect(follower.seen).toEqual(feed.newest());
      }
    });
    await fc.assert(history, { numRuns: 400 });
  });

  test("in step cost one read, and get the same objects", async () => {
    const feed = new Feed();
    const shared = new SharedFeed(feed, feed);
    const followers = Array.from({ length: 100 }, () => shared.follow("me", query));
    feed.push("a");
    feed.push("b");
    const pages = await Promise.all(followers.map((read) => read(0)));
    expect(feed.reads).toBe(1);
    const [first] = pages;
    for (const { items } of pages) expect(items[1]).toBe(first?.items[1]);
    feed.push("c");
    await Promise.all(followers.map((read) => read(2)));
    expect(feed.reads).toBe(2);
  });

  test("share nothing once all have been woken, nor with other queries", async () => {
    const feed = new Feed();
    const shared = new SharedFeed(feed, feed);
    feed.push("a");
    await shared.follow("me", query)(0);
    await shared.follow("me", { ...query, types: ["note"] })(0);
    await shared.follow("you", query)(0);
    expect(feed.reads).toBe(3);
    feed.quiet();
    feed.isWaking = false;
    await shared.follow("me", query)(0);
    expect(feed.reads).toBe(4);
  });

  test("far behind read what is not kept any more", async () => {
    const feed = new Feed();
    const shared = new SharedFeed(feed, feed);
    const late = new Follower(shared.follow("me", query), 0);
    feed.push("a");
    await shared.follow("me", query)(0);
    for (const id of ["b", "c", "d", "e"]) feed.push(id, large);
    await late.catchUp();
    expect(late.seen).toEqual(feed.newest());
  });

  test("read their own snapshot", async () => {
    const feed = new Feed();
    const shared = new SharedFeed(feed, feed);
    for (const id of ["a", "b", "c"]) feed.push(id);
    const read = shared.follow("me", { ...query, tombstonesAfter: 2 });
    await read(0);
    await read(0);
    expect(feed.reads).toBe(2);
    await read(2);
    await shared.follow("me", query)(2);
    expect(feed.reads).toBe(3);
  });
});
