import { describe, expect, test } from "vitest";
import { minute, type OpenedStore } from "./open-store.ts";
import {
  feedQuery,
  namesOf,
  pushEach,
  pushSingle,
  readFeed,
  recordDraft,
} from "./record-drafts.ts";
import { errorOf, refusalOf } from "./refusal.ts";

type Open = () => Promise<OpenedStore>;

export function pushSuite(open: Open): void {
  describe("what is stored", () => storedSuite(open));
  describe("the same version, data and deletion", () => unchangedSuite(open));
  describe("expected revision, then version", () => versionSuite(open));
}

function storedSuite(open: Open): void {
  test("the first version of an entity is created", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const { result, touched } = await pushSingle(store);
    const now = clock.wallUs();
    const record = {
      type: "note",
      entityId: "n1",
      encryptedData: "",
      version: "1.0.0",
      deleted: false,
      revision: 1,
      cursor: now,
      agentId: "agent-1",
      createdUs: now,
      updatedUs: now,
    };
    expect(result).toStrictEqual([{ status: "created", record }]);
    expect(touched).toMatchObject({ feeds: ["alice"], queued: [], executions: [] });
    const { items } = await readFeed(store);
    expect(items).toStrictEqual([{ record: { ...record, encryptedData: "sealed" } }]);
  });

  test("a greater version is updated: the revision is dense, the day of its creation stays", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const createdUs = clock.wallUs();
    await pushSingle(store);
    clock.advance(minute);
    await pushSingle(store, { version: "1.0.1", encryptedData: "newer" });
    clock.advance(minute);
    const { result } = await pushSingle(store, { version: "2", encryptedData: "newest" });
    const now = clock.wallUs();
    expect(result).toMatchObject([
      { status: "updated", record: { revision: 3, createdUs, updatedUs: now, cursor: now } },
    ]);
    expect((await readFeed(store)).items).toMatchObject([
      { record: { version: "2", encryptedData: "newest" } },
    ]);
  });

  test("a deletion leaves a tombstone, also of what was never there", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store);
    const proof = { version: "1.1", deleted: true, encryptedData: "proof" };
    expect((await pushSingle(store, proof)).result).toMatchObject([
      { status: "deleted", record: { deleted: true, revision: 2 } },
    ]);
    const unknown = { entityId: "n2", deleted: true, encryptedData: "" };
    expect((await pushSingle(store, unknown)).result).toMatchObject([
      { status: "deleted", record: { deleted: true, revision: 1 } },
    ]);
    expect((await readFeed(store)).items).toMatchObject([
      { record: { entityId: "n1", deleted: true, version: "1.1", encryptedData: "proof" } },
      { record: { entityId: "n2", deleted: true, version: "1.0.0", encryptedData: "" } },
    ]);
  });

  test("only a greater version brings a tombstone back", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store, { version: "2", deleted: true });
    expect(await refusalOf(pushSingle(store, { version: "1.9" }))).toBe("SYNC_CONFLICT");
    expect(await refusalOf(pushSingle(store, { version: "2" }))).toBe("SYNC_CONFLICT");
    expect((await pushSingle(store, { version: "2.0.1" })).result).toMatchObject([
      { status: "updated", record: { deleted: false, revision: 2 } },
    ]);
  });

  test("the same entity of another owner, type or id is another", async () => {
    await using opened = await open();
    const { store } = opened;
    const push = { agentId: "agent-1", drafts: [recordDraft()], mode: "single" } as const;
    await store.records.pushRecords("bob", push);
    const others = [recordDraft(), recordDraft({ type: "task" }), recordDraft({ entityId: "n2" })];
    const outcomes = await pushEach(store, ...others);
    expect(outcomes.map(({ status }) => status)).toStrictEqual(["created", "created", "created"]);
    expect(namesOf(await store.records.readFeed("bob", feedQuery()))).toStrictEqual(["note/n1"]);
  });

  test("accepted records take consecutive positions, whatever the clock does", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await pushSingle(store);
    const first = await store.records.head("alice");
    clock.stepWall(-minute);
    const outcomes = await pushEach(
      store,
      recordDraft({ entityId: "n2" }),
      recordDraft({ version: "0.1" }),
      recordDraft({ entityId: "n3" }),
    );
    expect(outcomes).toMatchObject([
      { status: "created", record: { cursor: first + 1, updatedUs: clock.wallUs() } },
      { status: "conflict" },
      { status: "created", record: { cursor: first + 2 } },
    ]);
    expect(await store.records.head("alice")).toBe(first + 2);
    clock.advance(2 * minute);
    await pushSingle(store, { version: "3" });
    expect(await store.records.head("alice")).toBe(clock.wallUs());
  });
}

function unchangedSuite(open: Open): void {
  test("is unchanged, and keeps its position", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const sealed = { encryptedData: "é" };
    await pushSingle(store, sealed);
    const before = await readFeed(store);
    clock.advance(minute);
    const again = await pushSingle(store, sealed);
    const stored = { revision: 1, cursor: clock.wallUs() - minute };
    expect(again.result).toMatchObject([{ status: "unchanged", record: stored }]);
    expect(again.touched.feeds).toStrictEqual([]);
    expect(await readFeed(store)).toStrictEqual(before);
  });

  test("goes before the expected revision", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store);
    expect((await pushSingle(store, { expectedRevision: 0 })).result).toMatchObject([
      { status: "unchanged" },
    ]);
  });

  test("the same by precedence, however it is written", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store);
    for (const version of ["1", "v1.0", "1.0.0+build.7"]) {
      expect((await pushSingle(store, { version })).result).toMatchObject([
        { status: "unchanged", record: { version: "1.0.0" } },
      ]);
    }
  });

  test("another byte or another deletion is not the same", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store, { encryptedData: "é" });
    const others = [{ encryptedData: "è" }, { encryptedData: "éé" }, { deleted: true }];
    for (const other of others) {
      const [outcome] = await pushEach(store, recordDraft({ encryptedData: "é", ...other }));
      expect(outcome).toMatchObject({ status: "conflict", reason: "SAME_VERSION" });
    }
  });
}

function versionSuite(open: Open): void {
  test.each([
    { given: "1.2.2", reason: "STALE_VERSION" },
    { given: "1.2.3-rc.9", reason: "STALE_VERSION" },
    { given: "1.2.3", reason: "SAME_VERSION" },
    { given: "v01.2.3+other", reason: "SAME_VERSION" },
  ])("after 1.2.3, $given is $reason", async ({ given, reason }) => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store, { version: "1.2.3" });
    const head = await store.records.head("alice");
    const error = await errorOf(pushSingle(store, { version: given, encryptedData: "other" }));
    expect(error.reason).toBe("SYNC_CONFLICT");
    expect(error.facts.conflict).toMatchObject({ reason, current: { version: "1.2.3" } });
    expect(await store.records.head("alice")).toBe(head);
  });

  test("an expected revision must be the stored one, whatever the version", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store);
    for (const expectedRevision of [0, 2]) {
      for (const version of ["0.1", "2"]) {
        const error = await errorOf(pushSingle(store, { version, expectedRevision }));
        expect(error.facts.conflict).toMatchObject({
          reason: "REVISION_MISMATCH",
          current: { revision: 1 },
        });
      }
    }
    expect((await pushSingle(store, { version: "2", expectedRevision: 1 })).result).toMatchObject([
      { status: "updated" },
    ]);
  });

  test("with the expected revision the version must be greater all the same", async () => {
    await using opened = await open();
    const { store } = opened;
    await pushSingle(store);
    const error = await errorOf(pushSingle(store, { version: "0.9", expectedRevision: 1 }));
    expect(error.facts.conflict).toMatchObject({ reason: "STALE_VERSION" });
  });

  test("expected revision 0: there must be no record, not even a tombstone", async () => {
    await using opened = await open();
    const { store } = opened;
    const error = await errorOf(pushSingle(store, { expectedRevision: 1 }));
    expect(error.facts.conflict).toStrictEqual({ reason: "REVISION_MISMATCH", current: null });
    await pushSingle(store, { expectedRevision: 0, deleted: true });
    const afresh = { version: "2", expectedRevision: 0 };
    expect(await refusalOf(pushSingle(store, afresh))).toBe("SYNC_CONFLICT");
  });
}
