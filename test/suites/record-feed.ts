import { describe, expect, test } from "vitest";
import { cursorOf } from "../../src/domain/record.ts";
import type { Store } from "../../src/storage/port.ts";
import { minute, type OpenedStore } from "./open-store.ts";
import {
  feedQuery,
  fillFeed,
  namesOf,
  pushEach,
  pushSingle,
  readFeed,
  recordDraft,
} from "./record-drafts.ts";

type Open = () => Promise<OpenedStore>;

export function feedSuite(open: Open): void {
  describe("the feed", () => orderSuite(open));
  describe("the cursor", () => cursorSuite(open));
  describe("the bounds of a page", () => boundsSuite(open));
}

function orderSuite(open: Open): void {
  test("after a position, in its order, each thing once in its newest state", async () => {
    await using opened = await open();
    const { store } = opened;
    await fillFeed(store);
    const page = await readFeed(store);
    expect(namesOf(page)).toStrictEqual(["note/n2", "task/n2", "note/n1", "note/n3"]);
    expect(page.items).toMatchObject([
      { record: { version: "1.0.0" } },
      { record: { version: "1.0.0" } },
      { record: { version: "2" } },
      { record: { version: "3", deleted: true } },
    ]);
    const [first, second] = page.items.map(cursorOf);
    expect(namesOf(await readFeed(store, { after: first ?? 0 }))).toStrictEqual([
      "task/n2",
      "note/n1",
      "note/n3",
    ]);
    expect(namesOf(await readFeed(store, { after: (second ?? 0) - 1 }))).toHaveLength(3);
  });

  test("another owner's records do not exist", async () => {
    await using opened = await open();
    const { store } = opened;
    await fillFeed(store);
    expect(await readFeed(store)).toMatchObject({ items: { length: 4 } });
    const empty = { items: [], cursor: 0, hasMore: false, head: 0 };
    expect(await store.records.readFeed("bob", feedQuery())).toStrictEqual(empty);
    expect(await store.records.readFeed("alic", feedQuery())).toStrictEqual(empty);
  });

  test("head: the position of the owner's last change; 0 for none", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    expect(await store.records.head("alice")).toBe(0);
    await pushSingle(store);
    expect(await store.records.head("alice")).toBe(clock.wallUs());
    expect(await store.records.head("bob")).toBe(0);
  });

  test("items and head are of one snapshot: nothing of a later write is in a page", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store);
    const reads: Promise<unknown>[] = [];
    const writes: Promise<unknown>[] = [];
    for (let i = 0; i < 50; i += 1) {
      writes.push(pushEach(store, recordDraft({ version: `2.${i}` })));
      reads.push(
        readFeed(store).then(({ items, head }) =>
          expect(items.map(cursorOf)).toStrictEqual([head]),
        ),
      );
      await new Promise(setImmediate);
    }
    await Promise.all([...reads, ...writes]);
    expect((await readFeed(store)).items).toMatchObject([{ record: { revision: 51 } }]);
  });
}

function cursorSuite(open: Open): void {
  test("is the head when nothing is left, whatever the filters dropped", async () => {
    await using opened = await open();
    const { store } = opened;
    await fillFeed(store);
    const head = await store.records.head("alice");
    const done = { cursor: head, hasMore: false, head };
    expect(await readFeed(store)).toMatchObject(done);
    expect(await readFeed(store, { types: ["task"] })).toMatchObject(done);
    expect(await readFeed(store, { types: ["other"] })).toStrictEqual({ ...done, items: [] });
    expect(await readFeed(store, { after: head })).toStrictEqual({ ...done, items: [] });
    expect(await readFeed(store, { after: head + 1_000 })).toStrictEqual({ ...done, items: [] });
  });

  test("is the last place looked at while there is more", async () => {
    await using opened = await open();
    const { store } = opened;
    await fillFeed(store);
    const all = (await readFeed(store)).items.map(cursorOf);
    const first = await readFeed(store, { limit: 3 });
    expect(first).toMatchObject({ items: { length: 3 }, cursor: all[2], hasMore: true });
    const second = await readFeed(store, { limit: 3, after: first.cursor });
    expect(second.items.map(cursorOf)).toStrictEqual(all.slice(3));
    expect(second).toMatchObject({ cursor: second.head, hasMore: false });
  });

  test("a full page that takes the last item has no more to come", async () => {
    await using opened = await open();
    const { store } = opened;
    await fillFeed(store);
    const page = await readFeed(store, { limit: 4 });
    expect(page).toMatchObject({ items: { length: 4 }, cursor: page.head, hasMore: false });
  });

  test("an item that changes between two pages comes again, in its newest state", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await fillFeed(store);
    const { cursor } = await readFeed(store, { limit: 1 });
    clock.stepWall(-minute);
    await pushSingle(store, { entityId: "n2", version: "9" });
    const rest = await readFeed(store, { after: cursor });
    expect(namesOf(rest)).toStrictEqual(["task/n2", "note/n1", "note/n3", "note/n2"]);
  });
}

function boundsSuite(open: Open): void {
  test("the payload bytes of a page are bounded", async () => {
    await using opened = await open();
    const { store } = opened;
    for (const entityId of ["n1", "n2", "n3", "n4"]) {
      await pushSingle(store, { entityId, encryptedData: "é".repeat(500) });
    }
    expect(namesOf(await readFeed(store, { bytesMax: 2_999 }))).toHaveLength(2);
    const page = await readFeed(store, { bytesMax: 3_000 });
    expect(namesOf(page)).toHaveLength(3);
    expect(page.hasMore).toBe(true);
    expect(namesOf(await readFeed(store, { bytesMax: 3_000, after: page.cursor }))).toStrictEqual([
      "note/n4",
    ]);
  });

  test("one item always fits", async () => {
    await using opened = await open();
    const { store } = opened;
    const encryptedData = "x".repeat(2_000);
    await pushSingle(store, { encryptedData });
    await pushSingle(store, { encryptedData, entityId: "n2" });
    const page = await readFeed(store, { bytesMax: 1_000 });
    expect(page).toMatchObject({ items: [{ record: { encryptedData } }], hasMore: true });
    expect(namesOf(await readFeed(store, { bytesMax: 1_000, after: page.cursor }))).toStrictEqual([
      "note/n2",
    ]);
  });

  test("items without data do not make a page without end", async () => {
    await using opened = await open();
    const { store } = opened;
    const tombstones = Array.from({ length: 500 }, (_, i) =>
      recordDraft({ entityId: `${i}`.padEnd(200, "."), encryptedData: "", deleted: true }),
    );
    await pushEach(store, ...tombstones);
    const page = await readFeed(store, { bytesMax: 20_000 });
    expect(page.items.length).toBeGreaterThan(20_000 / 400);
    expect(page.items.length).toBeLessThan(25_000 / 200);
    expect(page.hasMore).toBe(true);
  });

  test("a page may hold fewer than limit items and still have more to come", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushMany(store, 4_600);
    const other = { agentId: "agent-2", drafts: [recordDraft()], mode: "single" } as const;
    await store.records.pushRecords("alice", other);
    const query = { exceptAgentId: "agent-1", limit: 10 };
    const first = await readFeed(store, query);
    expect(first).toMatchObject({ items: [], hasMore: true });
    const second = await readFeed(store, { ...query, after: first.cursor });
    expect(second).toMatchObject({ cursor: second.head, hasMore: false });
    expect(namesOf(second)).toStrictEqual(["note/n1"]);
  });

  test("tombstones that a snapshot leaves out take no page of their own", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushMany(store, 4_600, { deleted: true, encryptedData: "" });
    await pushSingle(store);
    const page = await readFeed(store, { withTombstones: false, limit: 1 });
    expect(namesOf(page)).toStrictEqual(["note/n1"]);
    expect(page).toMatchObject({ cursor: page.head, hasMore: false });
  });
}

async function pushMany(
  store: Store,
  count: number,
  changes: Parameters<typeof recordDraft>[0] = {},
): Promise<void> {
  const drafts = Array.from({ length: count }, (_, i) =>
    recordDraft({ type: "many", entityId: `m${i}`, ...changes }),
  );
  await pushEach(store, ...drafts);
}
