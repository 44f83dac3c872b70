import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { setTimeout as pause } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SubscribeRequestSchema } from "../../gen/sealflow/v1/sync_pb.ts";
import { spans } from "../../src/domain/limits.ts";
import { agentHeaders, type RestCaller } from "./callers.ts";
import { EventParser, type SentEvent } from "./event-parser.ts";
import { openEvents } from "./event-streams.ts";
import { startTestServer, type TestServer } from "./server.ts";
import { newDevice } from "./streams.ts";

// Readers of streams that read slowly, or not at all. Their time is real, so they go side by side.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const mebibyte = 1024 * 1024;
/** Records of a mebibyte: more than all buffers between a server and its reader hold. */
const names = Array.from({ length: 24 }, (_, i) => `n${i}`);
const testMs = 4 * spans.streamStallMs;

test.concurrent(
  "who reads nothing of an event stream for 30 s is let go",
  async () => {
    const me = await deviceWith(names);
    const response = await openUnread(me.as("idler"));
    const letGoMs = performance.now();
    await expectLetGo("rest", "idler");
    expect(performance.now() - letGoMs).toBeGreaterThan(spans.streamStallMs - 1000);

    // What had gone out ends there. Nothing was skipped, and the rest is still to be had.
    const events = await readUntilCut(response);
    const told = events.flatMap(({ data }) => JSON.parse(data).record?.entityId ?? []);
    expect(told.length).toBeLessThan(names.length);
    expect(told).toEqual(names.slice(0, told.length));
    const lastEventId = events.at(-1)?.lastEventId ?? "";
    await using next = await openEvents(server, me, "", { "last-event-id": lastEventId });
    expect((await next.next())?.lastEventId).toBe(lastEventId);
    const rest = names.slice(told.length);
    expect(await next.words(rest.length)).toEqual(rest.map((name) => `state_upserted ${name}`));
  },
  testMs,
);

test.concurrent(
  "who reads nothing of a gRPC stream for 30 s is let go",
  async () => {
    const me = await deviceWith(names);
    using stream = openGrpc(me.as("grpc-idler"));
    const reset = once(stream.http2, "error");
    await expectLetGo("grpc", "grpc-idler");
    stream.http2.resume();
    // To a client of gRPC that is RESOURCE_EXHAUSTED.
    expect(String(await reset)).toContain("NGHTTP2_ENHANCE_YOUR_CALM");
  },
  testMs,
);

test.concurrent(
  "who takes longer than 30 s over one message is not let go",
  async () => {
    const me = await deviceWith(["one"]);
    using stream = openGrpc(me.as("slow"));
    const beganMs = performance.now();
    let bytes = 0;
    for await (const chunk of stream.http2 as AsyncIterable<Buffer>) {
      const isStep =
        Math.floor(bytes / (mebibyte / 8)) < Math.floor((bytes + chunk.length) / (mebibyte / 8));
      bytes += chunk.length;
      if (bytes > mebibyte) break;
      if (isStep) await pause(spans.streamStallMs / 6);
    }
    expect(bytes).toBeGreaterThan(mebibyte);
    expect(performance.now() - beganMs).toBeGreaterThan(spans.streamStallMs);
    expect(server.log.filter((line) => line.includes('"slow"'))).toEqual([]);
  },
  testMs,
);

/** An owner's device, and records of a mebibyte each. */
async function deviceWith(entityIds: readonly string[]): Promise<RestCaller> {
  const { me, push } = await newDevice(server);
  const encryptedData = "x".repeat(mebibyte);
  for (const entityId of entityIds) await push(entityId, { encryptedData });
  return me;
}

/** An event stream that nobody reads. */
async function openUnread({ token, agentId }: RestCaller): Promise<IncomingMessage> {
  const request = get(`${server.httpUrl}/api/v1/sync/subscribe?since=0`, {
    headers: agentHeaders(token, agentId),
  });
  const [response] = await once(request, "response");
  expect(response.statusCode).toBe(200);
  return response;
}

async function readUntilCut(response: IncomingMessage): Promise<SentEvent[]> {
  const parser = new EventParser();
  const events: SentEvent[] = [];
  const read = async () => {
    for await (const chunk of response) events.push(...parser.feed(chunk));
  };
  await expect(read()).rejects.toMatchObject({ code: "ECONNRESET" });
  return events;
}

/** A gRPC stream that is read by hand: HTTP/2 lets no more than 64 KiB wait for it. */
function openGrpc({ token, agentId }: RestCaller) {
  const session = connect(server.grpcUrl);
  const http2 = session.request({
    ...{ ":method": "POST", ":path": "/sealflow.v1.SyncService/Subscribe", te: "trailers" },
    ...{ "content-type": "application/grpc", ...agentHeaders(token, agentId) },
  });
  const message = toBinary(SubscribeRequestSchema, create(SubscribeRequestSchema, { since: 0n }));
  const frameHead = Buffer.alloc(5);
  frameHead.writeUInt32BE(message.length, 1);
  http2.end(Buffer.concat([frameHead, message]));
  return { http2, [Symbol.dispose]: () => session.destroy() };
}

/** The server has ended the stream of this agent, for its reader does not read. */
async function expectLetGo(door: string, agent: string): Promise<void> {
  const ends = () =>
    server.log.map((line) => JSON.parse(line)).filter((line) => line.agent === agent);
  await expect.poll(ends, { timeout: 2 * spans.streamStallMs, interval: 250 }).toHaveLength(1);
  expect(ends()).toMatchObject([
    { door, rpc: "Subscribe", reason: "SLOW_CONSUMER", level: "info" },
  ]);
}
