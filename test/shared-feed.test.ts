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
  isWakingSeveral = () => this.isWaking;
  reads = 0;
  head = 0;
  readonly #items = new Map<string, FeedItem>();
  readonly #watchers: FeedWatcher[] = [];

  watch(watcher: FeedWatcher): void {
    this.#watchers.push(watcher);
  }

  push(entityId: string, encryptedData = "", deleted = false): void {
    this.head += 1;
    const record = {
      ...{ type: "note", entityId, encryptedData, version: "1", deleted },
      ...{ revision: 1, cursor: this.head, agentId: "a", createdUs: 0, updatedUs: 0 },
    };
    this.#items.delete(entityId);
    this.#items.set(entityId, { record });
    for (const { rang } of this.#watchers) rang("me");
  }

  quiet(): void {
    for (const { quiet } of this.#watchers) quiet("me");
  }

  async readFeed(_owner: string, query: FeedQuery): Promise<FeedPage> {
    this.reads += 1;
    const { after, limit, tombstonesAfter = 0 } = query;
    const later = [...this.#items.values()].filter((item) => {
      if (item.record?.deleted === true && cursorOf(item) <= tombstonesAfter) return false;
      return cursorOf(item) > after;
    });
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

  test("get each thing once, in its newest state, however late they are", async () => {
    const feed = new Feed();
    const shared = new SharedFeed(feed, feed);
    const early = shared.follow("me", query);
    for (const id of ["a", "b", "a"]) {
      feed.push(id);
      await early(feed.head - 1);
    }
    const { items } = await shared.follow("me", query)(0);
    expect(items.map(({ record }) => [record?.entityId, record?.cursor])).toEqual([
      ["b", 2],
      ["a", 3],
    ]);
    expect(feed.reads).toBe(3);
  });

  test("of a snapshot keep no deletion from those who resume", async () => {
    const feed = new Feed();
    const shared = new SharedFeed(feed, feed);
    feed.push("a");
    feed.push("b", "", true);
    const snapshot = new Follower(shared.follow("me", { ...query, tombstonesAfter: 2 }), 0);
    await snapshot.catchUp();
    feed.push("c");
    await snapshot.catchUp();
    expect(snapshot.seen).toEqual(
      new Map([
        ["a", 1],
        ["c", 3],
      ]),
    );
    const resumed = new Follower(shared.follow("me", query), 1);
    await resumed.catchUp();
    expect(resumed.seen).toEqual(
      new Map([
        ["b", 2],
        ["c", 3],
      ]),
    );
  });

  test.each([
    ["others' changes alone", { exceptAgentId: "a" }],
    ["states alone", { withTombstones: false }],
    ["deletions alone", { withRecords: false }],
  ])("by a query for %s read each for itself, for a change can leave it", async (_, own) => {
    const feed = new Feed();
    const shared = new SharedFeed(feed, feed);
    feed.push("a");
    for (let reads = 1; reads <= 3; reads += 1) {
      await shared.follow("me", { ...query, ...own })(0);
      expect(feed.reads).toBe(reads);
    }
  });

  test("of very many owners share no more than some of them, until those are quiet", async () => {
    const feed = new Feed();
    const shared = new SharedFeed(feed, feed);
    const owners = ["me", ...Array.from({ length: 99 }, (_, i) => `owner-${i}`)];
    const readTwice = async () => {
      feed.reads = 0;
      for (const owner of [...owners, ...owners]) await shared.follow(owner, query)(0);
      return feed.reads;
    };
    expect(await readTwice()).toBe(200 - 32);
    expect(await readTwice()).toBe(200 - 32 - 32);
    feed.quiet();
    const last = owners.at(-1) ?? "";
    feed.reads = 0;
    await shared.follow(last, query)(0);
    await shared.follow(last, query)(0);
    expect(feed.reads).toBe(1);
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
