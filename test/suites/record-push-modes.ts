import { describe, expect, test } from "vitest";
import { limits } from "../../src/domain/limits.ts";
import type { OpenedStore } from "./open-store.ts";
import {
  namesOf,
  pushAtomic,
  pushEach,
  pushSingle,
  readFeed,
  recordDraft,
} from "./record-drafts.ts";
import { errorOf } from "./refusal.ts";

type Open = () => Promise<OpenedStore>;

export function pushModeSuite(open: Open): void {
  describe("single", () => singleSuite(open));
  describe("each", () => eachSuite(open));
  describe("atomic", () => atomicSuite(open));
}

function singleSuite(open: Open): void {
  test("a conflict shows the server's record with its data", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store, { version: "2", encryptedData: "the server's" });
    const { items } = await readFeed(store);
    const error = await errorOf(pushSingle(store, { mutationId: "m1" }));
    expect(error.reason).toBe("SYNC_CONFLICT");
    expect(error.facts.conflict).toStrictEqual({
      reason: "STALE_VERSION",
      current: items[0]?.record,
    });
  });
}

function eachSuite(open: Open): void {
  test("reports every conflict as an outcome, and stores the rest", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushEach(store, recordDraft({ version: "2", encryptedData: "the server's" }));
    const { items } = await readFeed(store);
    const outcomes = await pushEach(
      store,
      recordDraft(),
      recordDraft({ entityId: "n2", expectedRevision: 4 }),
      recordDraft({ entityId: "n3" }),
    );
    expect(outcomes).toMatchObject([
      { status: "conflict", reason: "STALE_VERSION" },
      { status: "conflict", reason: "REVISION_MISMATCH", current: null },
      { status: "created" },
    ]);
    expect(outcomes[0]).toStrictEqual({
      status: "conflict",
      reason: "STALE_VERSION",
      current: items[0]?.record,
    });
    expect(namesOf(await readFeed(store))).toStrictEqual(["note/n1", "note/n3"]);
  });

  test("nothing is touched when nothing is stored", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushEach(store, recordDraft({ version: "2" }));
    const push = { agentId: "agent-1", drafts: [recordDraft()], mode: "each" } as const;
    const { touched } = await store.records.pushRecords("alice", push);
    expect(touched).toMatchObject({ feeds: [], queued: [], executions: [] });
  });

  test("leaves the data out of conflicts once the answer is full", async () => {
    await using opened = await open();
    const { store } = opened;
    const large = "x".repeat(limits.pageBytesMax / 2);
    const sizes = [large, "small", large, large, ""];
    const stored = sizes.map((encryptedData, i) =>
      recordDraft({
        entityId: `n${i}`,
        version: "2",
        encryptedData,
        deleted: encryptedData === "",
      }),
    );
    for (const draft of stored) await pushEach(store, draft);
    const stale = stored.map(({ entityId }) => recordDraft({ entityId }));
    const outcomes = await pushEach(store, ...stale);
    const shown = outcomes.map((it) =>
      it.status === "conflict" ? [it.current?.encryptedData.length, it.dataOmitted] : [],
    );
    expect(shown).toStrictEqual([
      [large.length, undefined],
      ["small".length, undefined],
      [0, true],
      [0, true],
      [0, undefined],
    ]);
  });
}

function atomicSuite(open: Open): void {
  test("stores all", async () => {
    await using opened = await open();
    const { store } = opened;
    const { result, touched } = await pushAtomic(
      store,
      recordDraft(),
      recordDraft({ entityId: "n2", deleted: true }),
    );
    expect(result.map(({ status }) => status)).toStrictEqual(["created", "deleted"]);
    expect(touched.feeds).toStrictEqual(["alice"]);
  });

  test("or none: every conflicting record is named, without its data, and nothing is written", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushEach(store, recordDraft({ version: "2" }), recordDraft({ entityId: "n2" }));
    const before = await readFeed(store);
    const error = await errorOf(
      pushAtomic(
        store,
        recordDraft({ entityId: "n3", mutationId: "m3" }),
        recordDraft(),
        recordDraft({ entityId: "n2", encryptedData: "other" }),
        recordDraft({ entityId: "n4", expectedRevision: 1 }),
      ),
    );
    expect(error.reason).toBe("SYNC_CONFLICT");
    expect(error.facts.conflict).toMatchObject({
      conflicts: [
        { index: 1, reason: "STALE_VERSION", current: { version: "2", encryptedData: "" } },
        { index: 2, reason: "SAME_VERSION", current: { entityId: "n2", encryptedData: "" } },
        { index: 3, reason: "REVISION_MISMATCH", current: null },
      ],
    });
    expect(await readFeed(store)).toStrictEqual(before);
    const again = recordDraft({ entityId: "n3", mutationId: "m3", version: "7" });
    expect(await pushEach(store, again)).toMatchObject([{ status: "created" }]);
  });

  test("a repeated batch answers as it did the first time", async () => {
    await using opened = await open();
    const { store } = opened;
    const drafts = ["n1", "n2"].map((entityId) => recordDraft({ entityId, mutationId: entityId }));
    const { result } = await pushAtomic(store, ...drafts);
    await pushSingle(store, { version: "2" });
    expect((await pushAtomic(store, ...drafts)).result).toStrictEqual(result);
  });
}
