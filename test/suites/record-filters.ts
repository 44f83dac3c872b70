import { expect, test } from "vitest";
import type { FeedQuery } from "../../src/storage/port.ts";
import type { OpenedStore } from "./open-store.ts";
import { fillFeed, namesOf, pushSingle, readFeed, readPages } from "./record-drafts.ts";

export function filterSuite(open: () => Promise<OpenedStore>): void {
  const cases: readonly { readonly filter: Partial<FeedQuery>; readonly names: string[] }[] = [
    { filter: { withRecords: false }, names: ["note/n3"] },
    { filter: { withTombstones: false }, names: ["note/n2", "task/n2", "note/n1"] },
    { filter: { withRecords: false, withTombstones: false }, names: [] },
    { filter: { types: ["task"] }, names: ["task/n2"] },
    {
      filter: { types: ["task", "note", "task"] },
      names: ["note/n2", "task/n2", "note/n1", "note/n3"],
    },
    { filter: { entityIds: ["n2", "n2"] }, names: ["note/n2", "task/n2"] },
    { filter: { entityIds: ["n3", "n1"] }, names: ["note/n1", "note/n3"] },
    { filter: { entityIds: ["n2", "n1"], types: ["note"] }, names: ["note/n2", "note/n1"] },
    { filter: { types: ["note"], withTombstones: false }, names: ["note/n2", "note/n1"] },
    { filter: { exceptAgentId: "agent-1" }, names: ["task/n2"] },
    { filter: { exceptAgentId: "agent-2" }, names: ["note/n2", "note/n1", "note/n3"] },
  ];
  test.each(cases)("$filter", async ({ filter, names }) => {
    await using opened = await open();
    const { store } = opened;
    await fillFeed(store);
    expect(namesOf(await readFeed(store, filter))).toStrictEqual(names);
    const paged = (await readPages(store, "alice", { ...filter, limit: 1 })).flatMap(namesOf);
    expect(paged).toStrictEqual(names);
  });

  test("with tombstones, a snapshot leaves out those up to a position", async () => {
    await using opened = await open();
    const { store } = opened;
    await fillFeed(store);
    const tombstonesAfter = await store.records.head("alice");
    const snapshot = { tombstonesAfter };
    expect(namesOf(await readFeed(store, snapshot))).toStrictEqual([
      "note/n2",
      "task/n2",
      "note/n1",
    ]);
    await pushSingle(store, { version: "7", deleted: true });
    expect(namesOf(await readFeed(store, snapshot))).toStrictEqual([
      "note/n2",
      "task/n2",
      "note/n1",
    ]);
    const { items } = await readFeed(store, { tombstonesAfter: tombstonesAfter - 1 });
    expect(items.at(-1)).toMatchObject({ record: { entityId: "n1", deleted: true } });
    expect(items.at(-2)).toMatchObject({ record: { entityId: "n3", deleted: true } });
  });
}
