import { expect, test } from "vitest";
import { minute, type OpenedStore } from "./open-store.ts";
import {
  namesOf,
  pushAtomic,
  pushEach,
  pushSingle,
  readFeed,
  recordDraft,
} from "./record-drafts.ts";
import { errorOf, refusalOf } from "./refusal.ts";

/** A known mutation id. */
export function mutationSuite(open: () => Promise<OpenedStore>): void {
  test("answers as it did the first time", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const first = await pushSingle(store, { mutationId: "m1" });
    clock.advance(minute);
    await pushSingle(store, { version: "2" });
    const head = await store.records.head("alice");
    const again = await pushSingle(store, { mutationId: "m1", encryptedData: "sealed anew" });
    expect(again.result).toStrictEqual(first.result);
    expect(again.touched.feeds).toStrictEqual([]);
    expect(await store.records.head("alice")).toBe(head);
    expect((await readFeed(store)).items).toMatchObject([{ record: { version: "2" } }]);
  });

  test("every status is remembered, unchanged too", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store);
    const pushes = [
      { mutationId: "m1" },
      { mutationId: "m2", version: "2" },
      { mutationId: "m3", version: "3", deleted: true, encryptedData: "" },
    ];
    for (const push of pushes) await pushSingle(store, push);
    const outcomes = await pushEach(store, ...pushes.map(recordDraft));
    expect(outcomes).toMatchObject([
      { status: "unchanged", record: { version: "1.0.0", revision: 1 } },
      { status: "updated", record: { version: "2", revision: 2 } },
      { status: "deleted", record: { version: "3", revision: 3 } },
    ]);
  });

  test("goes before everything else: the expected revision is not looked at again", async () => {
    await using opened = await open();
    const { store } = opened;
    const push = { mutationId: "m1", expectedRevision: 0 };
    const { result } = await pushSingle(store, push);
    expect((await pushSingle(store, push)).result).toStrictEqual(result);
  });

  test("a refused one is not remembered", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store, { version: "2" });
    expect(await refusalOf(pushSingle(store, { mutationId: "m1" }))).toBe("SYNC_CONFLICT");
    expect((await pushSingle(store, { mutationId: "m1", version: "3" })).result).toMatchObject([
      { status: "updated" },
    ]);
  });

  test("for another entity, version or deletion it was used for something else", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store, { mutationId: "m1" });
    const others = [{ entityId: "n2" }, { type: "task" }, { version: "1.0.1" }, { deleted: true }];
    for (const other of others) {
      const push = recordDraft({ mutationId: "m1", ...other });
      const error = await errorOf(pushSingle(store, push));
      expect(error.reason).toBe("IDEMPOTENCY_CONFLICT");
      expect(error.facts.details).toStrictEqual({ mutationId: "m1" });
      expect(await refusalOf(pushAtomic(store, push))).toBe("IDEMPOTENCY_CONFLICT");
      expect(await pushEach(store, push)).toMatchObject([
        { status: "conflict", reason: "MUTATION_REUSED" },
      ]);
    }
    expect(namesOf(await readFeed(store))).toStrictEqual(["note/n1"]);
  });

  test("is the owner's", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store, { mutationId: "m1" });
    const drafts = [recordDraft({ mutationId: "m1", version: "2" })];
    const push = { agentId: "agent-1", drafts, mode: "single" } as const;
    expect((await store.records.pushRecords("bob", push)).result).toMatchObject([
      { status: "created" },
    ]);
  });
}
