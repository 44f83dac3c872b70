import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import {
  GoingAwayReason,
  type SubscribeRequestSchema,
  type SyncUpdate,
  UpdateKind,
  UpdateKindSchema,
} from "../../gen/sealflow/v1/sync_pb.ts";
import { failureOf, newOwner, reasonOf, rpcCaller, type Wire, wires } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** A stream that is read message by message. */
interface Stream extends AsyncDisposable {
  next(): Promise<SyncUpdate>;
  /** The next so many, in words: kind, and entity or id. */
  words(count: number): Promise<string[]>;
  isOver(): Promise<boolean>;
}

type Who = { readonly token: string; readonly agentId: string };

function open(
  who: Who,
  request: MessageInitShape<typeof SubscribeRequestSchema> = {},
  { wire = "grpc", target = server }: { wire?: Wire; target?: TestServer } = {},
): Stream {
  const ending = new AbortController();
  const { sync } = rpcCaller(target, who, wire);
  const updates = sync.subscribe(request, { signal: ending.signal })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await updates.next();
    if (done === true) throw new Error("the stream is over");
    return value;
  };
  return {
    next,
    async words(count) {
      const words = [];
      for (let i = 0; i < count; i += 1) words.push(inWords(await next()));
      return words;
    },
    isOver: async () => (await updates.next()).done === true,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await updates.next().catch(() => {});
    },
  };
}

function inWords({ kind, record, change }: SyncUpdate): string {
  const about = record?.entityId ?? (change && `${change.id} ${change.status.value ?? "deleted"}`);
  return `${UpdateKindSchema.value[kind]?.localName}${about === undefined ? "" : ` ${about}`}`;
}

async function newDevice() {
  const me = await newOwner(server);
  const push = (entityId: string, more: object = {}) =>
    me.ok("POST", "/sync/push", {
      ...{ type: "note", entityId, encryptedData: `data of ${entityId}`, version: "1", ...more },
    });
  return { me, push };
}

describe.each(wires)("over %s", (wire) => {
  test("what is there, then what comes, each chained to the one before", async () => {
    const { me, push } = await newDevice();
    await push("a");
    await push("b");
    await push("b", { version: "2", deleted: true, encryptedData: "" });
    await using stream = open(me, { since: 0n }, { wire });
    const seen = [await stream.next(), await stream.next(), await stream.next()];
    await push("a", { version: "2" });
    seen.push(await stream.next());
    await push("a", { version: "3", deleted: true, encryptedData: "" });
    seen.push(await stream.next());
    expect(seen.map(inWords)).toEqual([
      ...["READY", "STATE_UPSERTED a", "UP_TO_DATE", "STATE_UPSERTED a", "STATE_DELETED a"],
    ]);
    expect(seen[0]?.epoch).not.toBe("");
    expect(seen[1]?.record).toMatchObject({ encryptedData: "data of a", revision: 1n });
    expect(seen[4]?.record).toMatchObject({ deleted: true, version: "3" });
    for (const [i, { prevCursor }] of seen.entries()) {
      if (i > 0) expect(prevCursor).toBe(seen[i - 1]?.cursor);
    }
    const { cursor } = await me.ok("GET", "/sync/pull");
    expect(Number(seen[4]?.cursor)).toBe(cursor);
  });

  test("a heartbeat when nothing else is to say", async () => {
    const { me } = await newDevice();
    await using stream = open(me, { heartbeat: { seconds: 1n, nanos: 0 } }, { wire });
    const beganMs = performance.now();
    expect(await stream.words(3)).toEqual(["READY", "UP_TO_DATE", "HEARTBEAT"]);
    expect(performance.now() - beganMs).toBeGreaterThan(900);
    expect(performance.now() - beganMs).toBeLessThan(3000);
  });

  test("GOING_AWAY with the cursor to go on from, when the server stops", async () => {
    await using target = await startTestServer();
    const me = await newOwner(target);
    const push = (entityId: string) =>
      me.ok("POST", "/sync/push", { type: "t", entityId, version: "1", encryptedData: "x" });
    await push("a");
    const stream = open(me, { since: 0n }, { wire, target });
    expect(await stream.words(3)).toEqual(["READY", "STATE_UPSERTED a", "UP_TO_DATE"]);
    const [last] = await Promise.all([stream.next(), target.restart()]);
    expect(last).toMatchObject({
      kind: UpdateKind.GOING_AWAY,
      reason: GoingAwayReason.STOPPING,
    });
    expect(last.epoch).not.toBe("");
    expect(await stream.isOver()).toBe(true);
    const again = await newOwner(target);
    const same = { token: me.token, agentId: again.agentId };
    await restPush(target, same, "b");
    await using next = open(same, { since: last.cursor }, { wire, target });
    expect(await next.words(3)).toEqual(["READY", "STATE_UPSERTED b", "UP_TO_DATE"]);
  });

  test("a cursor that the server has not reached is refused", async () => {
    const { me, push } = await newDevice();
    const { record } = await push("a");
    await using stream = open(me, { since: BigInt(record.cursor + 1) }, { wire });
    const failure = await failureOf(stream.next());
    expect([failure.code, reasonOf(failure)]).toEqual([Code.OutOfRange, "SYNC_CURSOR_AHEAD"]);
  });
});

async function restPush(target: TestServer, { token, agentId }: Who, entityId: string) {
  const { sync } = rpcCaller(target, { token, agentId });
  await sync.pushState({ type: "t", entityId, version: "1", encryptedData: "x" });
}

describe("since", () => {
  test("absent is from now on", async () => {
    const { me, push } = await newDevice();
    await push("old");
    await using stream = open(me);
    expect(await stream.words(2)).toEqual(["READY", "UP_TO_DATE"]);
    await push("new");
    expect(await stream.words(1)).toEqual(["STATE_UPSERTED new"]);
  });

  test("a cursor is excluded, and what it misses comes, tombstones too", async () => {
    const { me, push } = await newDevice();
    const { record } = await push("a");
    await push("b");
    await push("c", { deleted: true, encryptedData: "" });
    await using stream = open(me, { since: BigInt(record.cursor) });
    expect(await stream.words(4)).toEqual([
      ...["READY", "STATE_UPSERTED b", "STATE_DELETED c", "UP_TO_DATE"],
    ]);
  });

  test("milliseconds are included", async () => {
    const { me, push } = await newDevice();
    await push("old");
    await new Promise((resolve) => setTimeout(resolve, 5));
    const { record } = await push("a");
    await using stream = open(me, { since: BigInt(Math.floor(record.cursor / 1000)) });
    expect(await stream.words(3)).toEqual(["READY", "STATE_UPSERTED a", "UP_TO_DATE"]);
    await using future = open(me, { since: BigInt(Date.now() + 60_000) });
    expect(await future.words(2)).toEqual(["READY", "UP_TO_DATE"]);
    await push("b");
    expect(await future.words(1)).toEqual(["STATE_UPSERTED b"]);
  });

  test("what came while nobody listened is not missed", async () => {
    const { me, push } = await newDevice();
    await using first = open(me, { since: 0n });
    await first.next();
    const { cursor } = await first.next();
    await push("a");
    await push("b");
    await using second = open(me, { since: cursor === 0n ? 0n : cursor });
    expect(await second.words(4)).toEqual([
      ...["READY", "STATE_UPSERTED a", "STATE_UPSERTED b", "UP_TO_DATE"],
    ]);
  });
});

describe("filters", () => {
  test("types and entities narrow, and the cursor moves past what they leave out", async () => {
    const { me, push } = await newDevice();
    await push("a");
    await push("b", { type: "todo" });
    await using stream = open(me, { since: 0n, types: ["todo"], entityIds: ["b", "c"] });
    expect(await stream.words(3)).toEqual(["READY", "STATE_UPSERTED b", "UP_TO_DATE"]);
    await push("b");
    await push("d", { type: "todo" });
    await push("c", { type: "todo" });
    expect(await stream.words(1)).toEqual(["STATE_UPSERTED c"]);
  });

  test("what the device pushed itself is left out when it asks so", async () => {
    const { me, push } = await newDevice();
    await using stream = open(me, { excludeOwn: true });
    expect(await stream.words(2)).toEqual(["READY", "UP_TO_DATE"]);
    await push("own");
    const phone = me.as("phone");
    await phone.ok("POST", "/sync/push", {
      ...{ type: "note", entityId: "theirs", version: "1", encryptedData: "x" },
    });
    expect(await stream.words(1)).toEqual(["STATE_UPSERTED theirs"]);
  });

  test("deletions alone", async () => {
    const { me, push } = await newDevice();
    await using stream = open(me, { kinds: [UpdateKind.STATE_DELETED] });
    await stream.words(2);
    await push("a");
    await push("a", { version: "2", deleted: true, encryptedData: "" });
    expect(await stream.words(1)).toEqual(["STATE_DELETED a"]);
  });

  test("workflows, executions and agents, when their kinds are asked for", async () => {
    const { me, push } = await newDevice();
    const kinds = [UpdateKind.WORKFLOW, UpdateKind.EXECUTION, UpdateKind.AGENT];
    await using stream = open(me, { kinds });
    await stream.words(2);
    await push("left out");
    const { id } = await me.ok("POST", "/workflows", { name: "w" });
    expect(await stream.words(1)).toEqual([`WORKFLOW ${id} 1`]);
    await me.ok("POST", "/agents/register", { id: "a" });
    expect(await stream.words(1)).toEqual(["AGENT a 1"]);
    const run = await me.ok("POST", `/workflows/${id}/execute`, { wait: 0 });
    const queued = await stream.next();
    expect(inWords(queued)).toBe(`EXECUTION ${run.executionId} 1`);
    expect(queued.change?.workflowId).toBe(id);
    await me.as("a").ok("POST", "/tasks/poll", { wait: 5 });
    const granted = (await stream.words(2)).sort();
    expect(granted).toEqual([`EXECUTION ${run.executionId} 2`, `WORKFLOW ${id} 2`]);
    await me.ok("DELETE", `/workflows/${id}`);
    const deleted = (await stream.words(2)).sort();
    expect(deleted).toEqual([`EXECUTION ${run.executionId} 5`, `WORKFLOW ${id} deleted`]);
    await me.ok("DELETE", "/agents/a");
    expect(await stream.words(1)).toEqual(["AGENT a deleted"]);
  });

  test("kinds that are none are refused", async () => {
    const { me } = await newDevice();
    const requests: MessageInitShape<typeof SubscribeRequestSchema>[] = [
      { kinds: [UpdateKind.READY] },
      { kinds: [99 as UpdateKind] },
      { heartbeat: { seconds: 0n, nanos: 5e8 } },
      { since: -1n },
      { since: 2n ** 53n },
      { types: [""] },
    ];
    for (const request of requests) {
      await using stream = open(me, request);
      const failure = await failureOf(stream.next());
      expect([failure.code, reasonOf(failure)]).toEqual([Code.InvalidArgument, "VALIDATION_ERROR"]);
    }
  });
});

test("an owner has 200 streams, and another one when one of them ends", async () => {
  const { me, push } = await newDevice();
  const streams = Array.from({ length: 200 }, () => open(me));
  await Promise.all(streams.map((stream) => stream.words(2)));
  const failure = await failureOf(open(me).next());
  expect([failure.code, reasonOf(failure)]).toEqual([Code.ResourceExhausted, "RATE_LIMITED"]);
  const [info] = failure.findDetails(ErrorInfoSchema);
  expect(info?.metadata).toEqual({ limit: "streams" });
  expect((await open(await newOwner(server)).next()).kind).toBe(UpdateKind.READY);

  await push("a");
  const words = await Promise.all(streams.map((stream) => stream.words(1)));
  expect(new Set(words.flat())).toEqual(new Set(["STATE_UPSERTED a"]));
  await streams[0]?.[Symbol.asyncDispose]();
  await expect
    .poll(() =>
      open(me)
        .next()
        .catch(() => null),
    )
    .not.toBeNull();
  await Promise.all(streams.map((stream) => stream[Symbol.asyncDispose]()));
});
