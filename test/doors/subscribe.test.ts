import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { GoingAwayReason, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import { failureOf, newOwner, reasonOf } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";
import { inWords, newDevice, openWay, type Way, ways } from "./streams.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** A stream of one caller. */
function open(
  who: { readonly token: string; readonly agentId: string },
  request: Parameters<typeof openWay>[2] = {},
  way: Way = "grpc",
) {
  return openWay(server, who, request, way);
}

describe.each(ways)("over %s", (way) => {
  test("what is there, then what comes, each chained to the one before", async () => {
    const { me, push } = await newDevice(server);
    await push("a");
    await push("b");
    await push("b", { version: "2", deleted: true, encryptedData: "" });
    await using stream = open(me, { since: 0n }, way);
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
    const { me } = await newDevice(server);
    await using stream = open(me, { heartbeat: { seconds: 1n, nanos: 0 } }, way);
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
    const stream = openWay(target, me, { since: 0n }, way);
    expect(await stream.words(3)).toEqual(["READY", "STATE_UPSERTED a", "UP_TO_DATE"]);
    const [last] = await Promise.all([stream.next(), target.restart()]);
    expect(last).toMatchObject({
      kind: UpdateKind.GOING_AWAY,
      reason: GoingAwayReason.STOPPING,
    });
    expect(last.epoch).not.toBe("");
    expect(await stream.isOver()).toBe(true);
    await push("b");
    await using next = openWay(target, me, { since: last.cursor }, way);
    expect(await next.words(3)).toEqual(["READY", "STATE_UPSERTED b", "UP_TO_DATE"]);
  });

  test("a cursor that the server has not reached is refused", async () => {
    const { me, push } = await newDevice(server);
    const { record } = await push("a");
    await using stream = open(me, { since: BigInt(record.cursor + 1) }, way);
    const failure = await failureOf(stream.next());
    expect([failure.code, reasonOf(failure)]).toEqual([Code.OutOfRange, "SYNC_CURSOR_AHEAD"]);
  });
});

describe.each(["grpc", "rest"] as const)("since over %s", (way) => {
  test("absent is from now on", async () => {
    const { me, push } = await newDevice(server);
    await push("old");
    await using stream = open(me, {}, way);
    expect(await stream.words(2)).toEqual(["READY", "UP_TO_DATE"]);
    await push("new");
    expect(await stream.words(1)).toEqual(["STATE_UPSERTED new"]);
  });

  test("a cursor is excluded, and what it misses comes, tombstones too", async () => {
    const { me, push } = await newDevice(server);
    const { record } = await push("a");
    await push("b");
    await push("c", { deleted: true, encryptedData: "" });
    await using stream = open(me, { since: BigInt(record.cursor) }, way);
    expect(await stream.words(4)).toEqual([
      ...["READY", "STATE_UPSERTED b", "STATE_DELETED c", "UP_TO_DATE"],
    ]);
  });

  test("milliseconds are included", async () => {
    const { me, push } = await newDevice(server);
    await push("old");
    await new Promise((resolve) => setTimeout(resolve, 5));
    const { record } = await push("a");
    await using stream = open(me, { since: BigInt(Math.floor(record.cursor / 1000)) }, way);
    expect(await stream.words(3)).toEqual(["READY", "STATE_UPSERTED a", "UP_TO_DATE"]);
    await using future = open(me, { since: BigInt(Date.now() + 60_000) }, way);
    expect(await future.words(2)).toEqual(["READY", "UP_TO_DATE"]);
    await push("b");
    expect(await future.words(1)).toEqual(["STATE_UPSERTED b"]);
  });

  test("what came while nobody listened is not missed", async () => {
    const { me, push } = await newDevice(server);
    await using first = open(me, { since: 0n }, way);
    await first.next();
    const { cursor } = await first.next();
    await push("a");
    await push("b");
    await using second = open(me, { since: cursor === 0n ? 0n : cursor }, way);
    expect(await second.words(4)).toEqual([
      ...["READY", "STATE_UPSERTED a", "STATE_UPSERTED b", "UP_TO_DATE"],
    ]);
  });

  test("of seconds by mistake is everything, and READY is a place to go on from", async () => {
    const { me, push } = await newDevice(server);
    await push("a");
    const since = BigInt(Math.ceil(Date.now() / 1000));
    await using first = open(me, { since }, way);
    const { cursor } = await first.next();
    expect(await first.words(1)).toEqual(["STATE_UPSERTED a"]);
    await using second = open(me, { since: cursor }, way);
    expect(await second.words(2)).toEqual(["READY", "STATE_UPSERTED a"]);
  });
});

test("an owner has 200 streams, and another one when one of them ends", async () => {
  const { me, push } = await newDevice(server);
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
