import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type ServiceImpl,
} from "@connectrpc/connect";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type PushRecord, PushStatus, SyncRecordSchema } from "../../gen/sealflow/v1/record_pb.ts";
import { SyncService, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import {
  memoryStorage,
  newKey,
  openReplica,
  type ReplicaEvent,
  type StateReplica,
  sealRecord,
} from "../../src/client/client.ts";

const key = newKey();
const open: StateReplica[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const replica of open.splice(0)) await replica.close();
});

interface Seen {
  readonly replica: StateReplica;
  readonly events: ReplicaEvent[];
  readonly kinds: () => string[];
}

/** A replica whose server is the test: it answers what no server of ours does. */
async function openBefore(service: Partial<ServiceImpl<typeof SyncService>>): Promise<Seen> {
  const transport = createRouterTransport((router) => router.service(SyncService, service));
  const events: ReplicaEvent[] = [];
  const replica = await openReplica({
    sync: createClient(SyncService, transport),
    storage: memoryStorage(),
    key,
    onConflict: () => "server",
    onEvent: (event) => events.push(event),
    random: () => 0.5,
  });
  open.push(replica);
  replica.start();
  return { replica, events, kinds: () => events.map(({ kind }) => kind) };
}

async function sealed(version: string, revision: number, cursor: number) {
  const name = { type: "note", entityId: "n1", version };
  const encryptedData = await sealRecord(name, `text ${version}`, key);
  const numbers = { revision: BigInt(revision), cursor: BigInt(cursor) };
  return create(SyncRecordSchema, { ...name, encryptedData, ...numbers });
}

const epoch = "e1";
const at = (cursor: number, prevCursor: number) => ({
  cursor: BigInt(cursor),
  prevCursor: BigInt(prevCursor),
});

/** Nothing is there, and the stream brings what the generator gives, then stands still. */
function streaming(
  updates: () => AsyncIterable<{ kind: UpdateKind; cursor: bigint; prevCursor: bigint }>,
): Partial<ServiceImpl<typeof SyncService>> {
  return {
    pullState: (request) => ({ cursor: request.since === 0n ? 100n : request.since, epoch }),
    async *subscribe(request, { signal }) {
      const { since = 0n } = request;
      yield { kind: UpdateKind.READY, cursor: since, prevCursor: since, epoch };
      yield* updates();
      await new Promise((_, reject) => signal.addEventListener("abort", reject));
    },
  };
}

describe("a server that is not honest", () => {
  test("cannot set a record back, though that was sealed once", async () => {
    const newer = await sealed("1.10.0", 5, 101);
    const older = await sealed("1.9.0", 6, 102);
    const { replica, events } = await openBefore(
      streaming(async function* () {
        yield { kind: UpdateKind.STATE_UPSERTED, record: newer, ...at(101, 100) };
        yield { kind: UpdateKind.STATE_UPSERTED, record: older, ...at(102, 101) };
      }),
    );
    await expect
      .poll(() => events.at(-1))
      .toMatchObject({
        kind: "refused",
        refusal: { code: "VERSION_WENT_BACK", version: "1.9.0" },
      });
    expect((await replica.get("note", "n1"))?.data).toBe("text 1.10.0");
  });

  test("cannot give a version other content", async () => {
    const one = await sealed("1", 5, 101);
    const other = await sealed("1", 6, 102);
    const { events } = await openBefore(
      streaming(async function* () {
        yield { kind: UpdateKind.STATE_UPSERTED, record: one, ...at(101, 100) };
        yield { kind: UpdateKind.STATE_UPSERTED, record: other, ...at(102, 101) };
      }),
    );
    await expect.poll(() => events.at(-1)).toMatchObject({ refusal: { code: "SAME_VERSION" } });
  });

  test("cannot leave out a part of the stream", async () => {
    const record = await sealed("1", 5, 103);
    const { replica, events } = await openBefore(
      streaming(async function* () {
        yield { kind: UpdateKind.STATE_UPSERTED, record, ...at(103, 102) };
      }),
    );
    await expect.poll(() => events.at(-1)).toMatchObject({ error: { code: "FEED_GAP" } });
    expect(await replica.list()).toEqual([]);
  });

  test("is not asked for ever when it never comes to an end", async () => {
    let pulls = 0;
    const { events } = await openBefore({
      pullState() {
        pulls += 1;
        return { cursor: 0n, epoch, hasMore: true };
      },
    });
    await expect.poll(() => events.at(-1)).toMatchObject({ error: { code: "FEED_GAP" } });
    expect(pulls).toBe(1);
  });

  test("is not asked for ever when each answer is of another history", async () => {
    let pulls = 0;
    const { events } = await openBefore({
      pullState() {
        pulls += 1;
        return { cursor: 0n, epoch: `e${pulls}` };
      },
      async *subscribe() {
        yield { kind: UpdateKind.READY, ...at(0, 0), epoch: "another" };
      },
    });
    await expect.poll(() => events.length).toBeGreaterThanOrEqual(4);
    expect(events.map((event) => event.kind === "offline" && event.error)).toContainEqual(
      expect.objectContaining({ code: "EPOCH_CHANGED" }),
    );
    // At most three for each pause.
    const offline = events.filter(({ kind }) => kind === "offline");
    expect(pulls).toBeLessThanOrEqual((offline.length + 1) * 3);
  });

  test("is not believed to have what it does not say it has", async () => {
    let pushes = 0;
    const { replica, kinds } = await openBefore({
      ...streaming(async function* () {}),
      pushState() {
        pushes += 1;
        return { epoch, results: [] };
      },
    });
    await replica.push({ type: "note", entityId: "n1", data: "text" });
    await expect.poll(kinds).toContain("retrying");
    expect([pushes, replica.pendingCount]).toEqual([1, 1]);
  });

  test("that has another history by now has acknowledged nothing", async () => {
    const { replica, events } = await openBefore({
      ...streaming(async function* () {}),
      pushState: (request) => ({
        epoch: "e2",
        results: request.records.map(() => ({
          status: PushStatus.CREATED,
          record: { revision: 1n },
        })),
      }),
    });
    await replica.push({ type: "note", entityId: "n1", data: "text" });
    await expect.poll(() => events.at(-1)).toMatchObject({ error: { code: "EPOCH_CHANGED" } });
    expect(replica.pendingCount).toBe(1);
  });
});

describe("an honest server", () => {
  test("may send what it had read before it took the pushes", async () => {
    const pushed: PushRecord[] = [];
    const bothPushed = Promise.withResolvers<void>();
    const { replica, events, kinds } = await openBefore({
      ...streaming(async function* () {
        await bothPushed.promise;
        for (const [i, { type, entityId, version, encryptedData }] of pushed.entries()) {
          const revision = BigInt(i + 1);
          const record = { type, entityId, version, encryptedData, revision };
          yield { kind: UpdateKind.STATE_UPSERTED, record, ...at(101 + i, 100 + i) };
        }
        yield { kind: UpdateKind.UP_TO_DATE, ...at(102, 102) };
      }),
      pushState({ records }) {
        pushed.push(...records);
        const revision = BigInt(pushed.length);
        return { epoch, results: [{ status: PushStatus.UPDATED, record: { revision } }] };
      },
    });
    for (const data of ["one", "two"]) await replica.push({ type: "note", entityId: "n1", data });
    await expect.poll(() => replica.pendingCount).toBe(0);
    bothPushed.resolve();
    await expect.poll(kinds).toContain("upToDate");
    expect(events.filter(({ kind }) => kind === "refused" || kind === "record")).toEqual([]);
    expect((await replica.get("note", "n1"))?.data).toBe("two");
  });

  test("may answer a push later than it streams what came after", async () => {
    const two = await sealed("2", 2, 101);
    const three = await sealed("3", 3, 102);
    const isThere = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const { replica, events, kinds } = await openBefore({
      ...streaming(async function* () {
        await asked.promise;
        yield { kind: UpdateKind.STATE_UPSERTED, record: three, ...at(102, 100) };
        yield { kind: UpdateKind.UP_TO_DATE, ...at(102, 102) };
      }),
      async pushState() {
        asked.resolve();
        await isThere.promise;
        return { epoch, results: [{ status: PushStatus.CONFLICT, current: two }] };
      },
    });
    await replica.push({ type: "note", entityId: "n1", data: "mine" });
    await expect.poll(kinds).toContain("upToDate");
    isThere.resolve();
    await expect.poll(kinds).toContain("conflict");
    expect(events.find((event) => event.kind === "conflict")?.conflict.server?.version).toBe("3");
    expect(kinds()).not.toContain("refused");
  });
});

describe("a stream", () => {
  test("that falls silent is given up and opened again", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let streams = 0;
    const { events, kinds } = await openBefore(
      streaming(async function* () {
        streams += 1;
        yield { kind: UpdateKind.UP_TO_DATE, ...at(100, 100) };
      }),
    );
    await vi.waitFor(() => expect(kinds()).toContain("upToDate"));
    await vi.advanceTimersByTimeAsync(44_000);
    expect(streams).toBe(1);
    await vi.advanceTimersByTimeAsync(2_000);
    await vi.waitFor(() => expect(streams).toBe(2));
    expect(events.find(({ kind }) => kind === "offline")).toMatchObject({
      error: { code: "SERVER_SILENT" },
    });
  });

  test("that the server cut because it was read too slowly goes on from where it was", async () => {
    const record = await sealed("1", 1, 101);
    const asked: (bigint | undefined)[] = [];
    const { replica, kinds } = await openBefore({
      pullState: ({ since }) => ({ cursor: since === 0n ? 100n : since, epoch }),
      async *subscribe({ since = 0n }, { signal }) {
        asked.push(since);
        yield { kind: UpdateKind.READY, cursor: since, prevCursor: since, epoch };
        if (asked.length > 1) {
          await new Promise((_, reject) => signal.addEventListener("abort", reject));
        }
        yield { kind: UpdateKind.STATE_UPSERTED, record, ...at(101, 100) };
        throw new ConnectError("too slow", Code.ResourceExhausted);
      },
    });
    await expect.poll(() => asked).toEqual([100n, 101n]);
    expect(kinds()).toContain("offline");
    expect((await replica.get("note", "n1"))?.data).toBe("text 1");
  });
});
