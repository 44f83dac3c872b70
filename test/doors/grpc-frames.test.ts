import { setTimeout as pause } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CreateWorkflowRequestSchema } from "../../gen/sealflow/v1/workflow_pb.ts";
import { restCaller } from "./callers.ts";
import { frame, type HandCaller, handCaller } from "./grpc-by-hand.ts";
import {
  askByHand,
  type Frame,
  flags,
  headerBlock,
  isEndOf,
  openRawHttp2,
  type RawHttp2,
  types,
  windowOf,
} from "./raw-http2.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// gRPC below the level of requests: frames of HTTP/2 in any order and number, or against its rules.

const doors = { lane: { grpcLane: true }, adapter: { grpcLane: false } } as const;

describe.each(Object.entries(doors))("the %s", (_, settings) => {
  let server: TestServer;
  let token: string;
  let caller: HandCaller;
  beforeAll(async () => {
    server = await startTestServer(settings);
    token = await server.token({ sub: "me" });
    caller = handCaller(server, token);
  });
  afterEach(async () => {
    expect((await caller.send({ body: call("after") })).code).toBe("OK");
  });
  afterAll(async () => {
    expect(faultsOf(server)).toEqual([]);
    await server[Symbol.asyncDispose]();
  });

  /** The headers of a call of Create, as a block. */
  const headers = (more: Readonly<Record<string, string>> = {}) =>
    headerBlock({
      ...{ ":method": "POST", ":scheme": "http", ":path": createPath, ":authority": "localhost" },
      ...{ te: "trailers", "content-type": "application/grpc", "x-agent-id": "laptop" },
      authorization: `Bearer ${token}`,
      ...more,
    });
  const ask = (wire: RawHttp2, stream: number, more: Readonly<Record<string, string>> = {}) =>
    askByHand(wire, stream, { ":path": createPath, authorization: `Bearer ${token}`, ...more });
  const say = (wire: RawHttp2, stream: number, payload: Buffer, end = true) =>
    wire.send({ stream, payload, flags: end ? flags.endStream : flags.none });
  /** How many workflows there are, in bytes that grow with them. */
  const listed = async () => {
    const path = "WorkflowService.ListWorkflows";
    const { messages } = await caller.send({ path, body: frame(new Uint8Array()) });
    return messages[0]?.length;
  };

  test("answers in one piece: headers, message, trailers", async () => {
    using wire = openRawHttp2(server);
    await wire.until(({ type, flags: bits }) => type === types.settings && bits === flags.ack);
    await pause(50);
    const before = wire.pieces;
    ask(wire, 1);
    say(wire, 1, call("w"));
    await wire.until(isEndOf(1));
    const answer = wire.frames.filter(({ stream }) => stream === 1);
    expect(answer.map(({ type }) => type)).toEqual([types.headers, types.data, types.headers]);
    expect(wire.pieces - before).toBeLessThanOrEqual(2);
  });

  test("takes headers in several frames, padding, and frames it does not know", async () => {
    using wire = openRawHttp2(server);
    const block = headers();
    wire.send({ type: 0xbe, stream: 0, payload: Buffer.from("what is this") });
    wire.send({ type: types.headers, stream: 1, payload: block.subarray(0, 20) });
    for (const [from, to] of [
      [20, 60],
      [60, 61],
    ]) {
      wire.send({ type: types.continuation, stream: 1, payload: block.subarray(from, to) });
    }
    const rest = block.subarray(61);
    wire.send({ type: types.continuation, flags: flags.endHeaders, stream: 1, payload: rest });
    wire.send({ type: types.priority, stream: 1, payload: Buffer.alloc(5, 1) });
    const body = call("w");
    const padded = Buffer.concat([Buffer.of(7), body.subarray(0, 3), Buffer.alloc(7)]);
    wire.send({ flags: flags.padded, stream: 1, payload: padded });
    say(wire, 1, body.subarray(3));
    expect(statusIn(wire, await wire.until(isEndOf(1)))).toBe("ok");
  });

  test("answers a ping", async () => {
    using wire = openRawHttp2(server);
    const payload = Buffer.from("12345678");
    wire.send({ type: types.ping, payload });
    const pong = await wire.until(({ type }) => type === types.ping);
    expect([pong.flags, pong.payload]).toEqual([flags.ack, payload]);
  });

  test("says how many streams and how large headers it takes", async () => {
    using wire = openRawHttp2(server);
    const { payload } = await wire.until(({ type }) => type === types.settings);
    const settings = new Map<number, number>();
    for (let at = 0; at < payload.length; at += 6) {
      settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    }
    const [concurrentStreams, headerListSize] = [3, 6];
    expect(settings.get(concurrentStreams)).toBe(1000);
    expect(settings.get(headerListSize)).toBe(64 * 1024);
  });

  test("resets a stream whose headers are too large, and goes on", async () => {
    using wire = openRawHttp2(server);
    await wire.until(({ type }) => type === types.settings);
    wire.send({ type: types.settings, flags: flags.ack });
    const large = Array.from({ length: 7 }, (_, i) => [`x-${i}`, "x".repeat(10 * 1024)]);
    const block = headers(Object.fromEntries(large));
    const pieces = Array.from({ length: 5 }, (_, i) =>
      block.subarray(i * 16_000, (i + 1) * 16_000),
    );
    for (const [i, payload] of pieces.entries()) {
      wire.send({
        type: i === 0 ? types.headers : types.continuation,
        flags: i === pieces.length - 1 ? flags.endHeaders : flags.none,
        stream: 1,
        payload,
      });
    }
    const reset = await wire.until(({ type, stream }) => type === types.reset && stream === 1);
    const enhanceYourCalm = 11;
    expect(reset.payload.readUInt32BE(0)).toBe(enhanceYourCalm);
    ask(wire, 3);
    say(wire, 3, call("w"));
    expect(statusIn(wire, await wire.until(isEndOf(3)))).toBe("ok");
  });

  test("sends nothing of a message before there is room for it", async () => {
    using wire = openRawHttp2(server, [[initialWindow, 0]]);
    ask(wire, 1);
    say(wire, 1, call("w"));
    await wire.until(({ type, stream }) => type === types.headers && stream === 1);
    await pause(100);
    const data = () => wire.frames.filter(({ type }) => type === types.data);
    expect(data()).toEqual([]);
    wire.send(windowOf(1, 3));
    expect((await wire.until(({ type }) => type === types.data)).payload).toHaveLength(3);
    wire.send(windowOf(1, 100_000));
    expect(statusIn(wire, await wire.until(isEndOf(1)))).toBe("ok");
  });

  test("goes on beside answers that nobody has taken yet", async () => {
    const owner = await server.token({ sub: "large" });
    const authorization = `Bearer ${owner}`;
    const encryptedData = "x".repeat(1024 * 1024);
    for (const entityId of ["a", "b", "c"]) {
      const record = { type: "t", entityId, version: "1", encryptedData };
      await restCaller(server, { token: owner, agentId: "laptop" }).ok(
        "POST",
        "/sync/push",
        record,
      );
    }
    using wire = openRawHttp2(server, [[initialWindow, 0]]);
    const pulls = Array.from({ length: 10 }, (_, i) => 2 * i + 1);
    for (const stream of pulls) {
      ask(wire, stream, { ":path": "/sealflow.v1.SyncService/PullState", authorization });
      say(wire, stream, frame(new Uint8Array()));
      await wire.until(({ type, stream: of }) => type === types.headers && of === stream);
    }
    const last = 2 * pulls.length + 1;
    ask(wire, last);
    say(wire, last, call("w"));
    wire.send(windowOf(last, 1000));
    expect(statusIn(wire, await wire.until(isEndOf(last)))).toBe("ok");
  });

  test("leaves the body of a stranger with him", async () => {
    using wire = openRawHttp2(server);
    ask(wire, 1, { authorization: "" });
    const end = await wire.until(isEndOf(1));
    expect(end.payload.length).toBeGreaterThan(0);
    const reset = await wire.until(({ type, stream }) => type === types.reset && stream === 1);
    expect(reset.payload).toEqual(Buffer.alloc(4));
    expect(wire.frames.indexOf(reset)).toBeGreaterThan(wire.frames.indexOf(end));
  });

  test("gives back the room that refused bodies took on their connection", async () => {
    using wire = openRawHttp2(server);
    const part = Buffer.alloc(16_000);
    for (let stream = 1; stream < 40; stream += 2) {
      ask(wire, stream, { authorization: "" });
      say(wire, stream, part, false);
      await wire.until(isEndOf(stream));
    }
    const given = () =>
      wire.frames
        .filter(({ type, stream }) => type === types.windowUpdate && stream === 0)
        .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
    await expect.poll(given).toBeGreaterThan(20 * 16_000 - 65_535);
  });

  test.each([0, 2, 7, 8])(
    "does nothing for a caller who leaves before his request ends, with %s",
    async (code) => {
      const before = await listed();
      using wire = openRawHttp2(server);
      ask(wire, 1);
      say(wire, 1, call("w"), false);
      await pause(100);
      const payload = Buffer.alloc(4);
      payload.writeUInt32BE(code);
      wire.send({ type: types.reset, stream: 1, payload });
      await pause(100);
      expect(await listed()).toBe(before);
    },
  );

  test("notices that the caller of a poll has left", async () => {
    const path = "/sealflow.v1.AgentService/PollTasks";
    await caller.send({
      path: "AgentService.RegisterAgent",
      headers: { "x-agent-id": "a" },
      body: frame(Buffer.of(0x0a, 1, 0x61)),
    });
    for (const leave of ["by a reset", "with his connection"]) {
      const before = server.log.length;
      using wire = openRawHttp2(server);
      ask(wire, 1, { ":path": path, "x-agent-id": "a" });
      say(wire, 1, frame(Buffer.of(0x12, 2, 8, 20)));
      await pause(200);
      const payload = Buffer.of(0, 0, 0, 8);
      if (leave === "by a reset") wire.send({ type: types.reset, stream: 1, payload });
      else wire[Symbol.dispose]();
      await expect.poll(() => server.log.slice(before).join()).toContain("CANCELLED");
    }
  });

  describe("ends a connection, and no other, for", () => {
    const padding = { type: types.data, flags: flags.padded, stream: 1, payload: Buffer.of(9, 1) };
    test.each<[string, (wire: RawHttp2) => void]>([
      ["a frame that is too large", (wire) => wire.send({ payload: Buffer.alloc(20_000) })],
      ["headers without a stream", (wire) => ask(wire, 0)],
      ["headers of an even stream", (wire) => ask(wire, 2)],
      ["data of no stream", (wire) => say(wire, 0, call("w"))],
      ["data of a stream that never was", (wire) => say(wire, 9, call("w"))],
      ["a push", (wire) => wire.send({ type: types.pushPromise, stream: 1 })],
      [
        "a ping of seven bytes",
        (wire) => wire.send({ type: types.ping, payload: Buffer.alloc(7) }),
      ],
      ["headers that are no HPACK", (wire) => wire.send(badBlock)],
      [
        "headers without their end",
        (wire) => {
          wire.send({ type: types.headers, stream: 1, payload: headers() });
          say(wire, 1, call("w"));
        },
      ],
      [
        "more padding than there is",
        (wire) => {
          ask(wire, 1);
          wire.send(padding);
        },
      ],
      ["bytes of another protocol", (wire) => wire.sendBytes(Buffer.alloc(100, 0xff))],
    ])("%s", async (_, send) => {
      using wire = openRawHttp2(server);
      await wire.until(({ type }) => type === types.settings);
      send(wire);
      await wire.closed;
    });
  });
});

/** The identifier of a setting. */
const initialWindow = 4;
const createPath = "/sealflow.v1.WorkflowService/CreateWorkflow";
const badBlock = {
  type: types.headers,
  flags: flags.endHeaders,
  stream: 1,
  payload: Buffer.alloc(20, 0xff),
};

function call(name: string): Buffer {
  const request = create(CreateWorkflowRequestSchema, { name });
  return frame(toBinary(CreateWorkflowRequestSchema, request));
}

/** The trailers of success are short; those of an error hold its details. */
function statusIn(wire: RawHttp2, trailers: Frame): "ok" | "error" {
  const hasData = wire.frames.some(({ type }) => type === types.data);
  return hasData && trailers.payload.length < 30 ? "ok" : "error";
}
