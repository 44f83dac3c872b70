import { setTimeout as pause } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SubscribeRequestSchema } from "../../gen/sealflow/v1/sync_pb.ts";
import { CreateWorkflowRequestSchema } from "../../gen/sealflow/v1/workflow_pb.ts";
import { type RestCaller, restCaller } from "./callers.ts";
import { frame } from "./grpc-by-hand.ts";
import {
  askByHand,
  flags,
  isEndOf,
  openRawHttp2,
  type RawHttp2,
  types,
  windowOf,
} from "./raw-http2.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// Callers who stand still: each is waited for 30 s. All at once, for that is long.

const patienceMs = 30_000;
const minute = 60_000;
const enhanceYourCalm = 11;
const initialWindow = 4;
const frameBytes = 16_000;

/** A server, and a caller who sends by hand. */
interface Side {
  readonly server: TestServer;
  readonly me: RestCaller;
  ask(wire: RawHttp2, rpc: string, body: Buffer, isOpen?: boolean): void;
  /** The lines of its log with this reason. */
  logged(reason: string): string[];
}

const sides = new Map<string, Side>();
beforeAll(async () => {
  sides.set("lane", await openSide({ grpcLane: true }));
  sides.set("adapter", await openSide({ grpcLane: false }));
});
afterAll(async () => {
  for (const { server } of sides.values()) {
    expect(faultsOf(server)).toEqual([]);
    await server[Symbol.asyncDispose]();
  }
});

async function openSide(settings: { readonly grpcLane: boolean }): Promise<Side> {
  const server = await startTestServer(settings);
  const token = await server.token({ sub: "me" });
  return {
    server,
    me: restCaller(server, { token, agentId: "laptop" }),
    ask(wire, rpc, body, isOpen = false) {
      const path = `/sealflow.v1.${rpc.replace(".", "/")}`;
      askByHand(wire, 1, { ":path": path, authorization: `Bearer ${token}` });
      for (let at = 0; at < body.length; at += frameBytes) {
        wire.send({ stream: 1, payload: body.subarray(at, at + frameBytes) });
      }
      if (!isOpen) wire.send({ stream: 1, flags: flags.endStream });
    },
    logged: (reason) => server.log.filter((line) => line.includes(reason)),
  };
}

const both = ["lane", "adapter"] as const;

describe.concurrent("a caller who stands still", { timeout: 3 * minute }, () => {
  test.each(both)("and takes nothing of a stream is let go by the %s", async (name) => {
    const { server, me, ask, logged } = sideOf(name);
    const encryptedData = "x".repeat(10_000);
    for (let i = 0; i < 40; i += 1) {
      const record = { type: "note", entityId: `${i}`, version: "1", encryptedData };
      await me.ok("POST", "/sync/push", record);
    }
    using wire = openRawHttp2(server);
    const beganMs = performance.now();
    const request = create(SubscribeRequestSchema, { since: 0n });
    ask(wire, "SyncService.Subscribe", frame(toBinary(SubscribeRequestSchema, request)));
    const reset = await wire.until(({ type }) => type === types.reset);
    expect(performance.now() - beganMs).toBeGreaterThan(patienceMs - 1000);
    expect(reset.payload.readUInt32BE(0)).toBe(enhanceYourCalm);
    expect(dataIn(wire)).toBeLessThanOrEqual(65_535);
    expect(logged("SLOW_CONSUMER").some((line) => line.includes("Subscribe"))).toBe(true);
  });

  test.each(both)("in the middle of his request has his call ended by the %s", async (name) => {
    const { server, ask, logged } = sideOf(name);
    using wire = openRawHttp2(server);
    const beganMs = performance.now();
    ask(wire, "WorkflowService.CreateWorkflow", Buffer.of(0, 0), true);
    const trailers = await wire.until(isEndOf(1));
    expect(performance.now() - beganMs).toBeGreaterThan(patienceMs - 1000);
    expect(trailers.payload.length).toBeGreaterThan(0);
    expect(logged("DEADLINE_EXCEEDED")).toHaveLength(1);
  });

  // (It is looked after every 30 s, so that one may have 60. The adapter keeps such an answer for as
  // long as its connection lives.)
  test("and takes nothing of an answer is let go by the lane", async () => {
    const { server, ask } = sideOf("lane");
    using wire = openRawHttp2(server, [[initialWindow, 0]]);
    ask(wire, "WorkflowService.CreateWorkflow", large(10));
    const reset = await wire.until(({ type }) => type === types.reset);
    expect(reset.payload.readUInt32BE(0)).toBe(enhanceYourCalm);
  });

  test.each(both)("only now and then is waited for by the %s", async (name) => {
    const { server, ask } = sideOf(name);
    const bytes = 60_000;
    using wire = openRawHttp2(server, [[initialWindow, 0]]);
    ask(wire, "WorkflowService.CreateWorkflow", large(bytes));
    for (let given = 0; given < bytes; given += 10_000) {
      wire.send(windowOf(1, 10_000));
      await pause(8000);
    }
    wire.send(windowOf(1, bytes));
    await wire.until(isEndOf(1));
    expect(dataIn(wire)).toBeGreaterThan(bytes);
  });
});

function sideOf(name: string): Side {
  const side = sides.get(name);
  if (side === undefined) throw new Error(`no ${name}`);
  return side;
}

function large(bytes: number): Buffer {
  const draft = { name: "w", encryptedData: "x".repeat(bytes) };
  const request = create(CreateWorkflowRequestSchema, draft);
  return frame(toBinary(CreateWorkflowRequestSchema, request));
}

function dataIn(wire: RawHttp2): number {
  const data = wire.frames.filter(({ type }) => type === types.data);
  return data.reduce((sum, { payload }) => sum + payload.length, 0);
}
