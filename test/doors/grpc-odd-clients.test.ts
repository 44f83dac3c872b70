import {
  create,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// The usual gRPC library of Node, used as hardly anyone uses it, through the lane of plain gRPC and
// through the Connect adapter.

const { createWorkflow, getWorkflow, listWorkflows } = WorkflowService.method;
const { executeAgent, pollTasks, registerAgent } = AgentService.method;
const { pushState, subscribe } = SyncService.method;
const { status } = grpc;
const MiB = 1024 * 1024;

describe.each([
  ["the lane", { grpcLane: true }],
  ["the Connect adapter", { grpcLane: false }],
])("through %s", (_, settings) => {
  let server: TestServer;
  let token: string;
  let client: grpc.Client;
  beforeAll(async () => {
    server = await startTestServer(settings);
    token = await server.token({ sub: "me" });
    client = newClient();
  });
  afterEach(async () => {
    await call(listWorkflows);
  });
  afterAll(async () => {
    client.close();
    expect(faultsOf(server)).toEqual([]);
    await server[Symbol.asyncDispose]();
  });

  const newClient = (options: grpc.ClientOptions = {}) =>
    new grpc.Client(new URL(server.grpcUrl).host, grpc.credentials.createInsecure(), {
      ...{ "grpc.max_send_message_length": -1, "grpc.max_receive_message_length": -1 },
      ...options,
    });

  const metadata = (more: Readonly<Record<string, string>> = {}) => {
    const result = new grpc.Metadata();
    const all = { authorization: `Bearer ${token}`, "x-agent-id": "laptop", ...more };
    for (const [name, value] of Object.entries(all)) result.set(name, value);
    return result;
  };

  interface Way extends grpc.CallOptions {
    readonly metadata?: grpc.Metadata;
    readonly by?: grpc.Client;
    /** Is handed the call once it is under way. */
    begun?(call: grpc.ClientUnaryCall): void;
  }

  function call<M extends DescMethod>(
    method: M,
    request?: MessageInitShape<M["input"]>,
    { metadata: sent = metadata(), by = client, begun, ...options }: Way = {},
  ): Promise<MessageShape<M["output"]>> {
    const { input, output } = method;
    return new Promise((resolve, reject) => {
      const started = by.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: MessageShape<M["input"]>) => Buffer.from(toBinary(input, message)),
        (bytes) => fromBinary<M["output"]>(output, bytes),
        create<M["input"]>(input, request),
        sent,
        options,
        (error, answer) => {
          if (error !== null) reject(error);
          else if (answer !== undefined) resolve(answer);
        },
      );
      begun?.(started);
    });
  }

  const codeOf = (asked: Promise<unknown>) =>
    asked.then(
      () => status.OK,
      (error: grpc.ServiceError) => error.code,
    );

  test("messages of every size up to the limit arrive as they were, and no larger ones", async () => {
    for (const size of [0, 1, 16_379, 65_535, 65_536, MiB]) {
      const encryptedData = "x".repeat(size);
      const { id } = await call(createWorkflow, { name: "w", encryptedData });
      expect((await call(getWorkflow, { id })).encryptedData).toHaveLength(size);
    }
    for (const size of [4 * MiB, 20 * MiB]) {
      const request = { name: "w", encryptedData: "x".repeat(size) };
      const error: grpc.ServiceError = await call(createWorkflow, request).catch((it) => it);
      expect(error.code).toBe(status.RESOURCE_EXHAUSTED);
      const [details] = error.metadata.get("grpc-status-details-bin");
      expect(Buffer.from(details ?? "").includes("PAYLOAD_TOO_LARGE")).toBe(true);
    }
  });

  test("a stranger is refused, whatever he sends", async () => {
    const request = { name: "w", encryptedData: "x".repeat(20 * MiB) };
    const stranger = { metadata: new grpc.Metadata() };
    expect(await codeOf(call(createWorkflow, request, stranger))).toBe(status.UNAUTHENTICATED);
  });

  test("compressed messages are understood", async () => {
    const { gzip } = grpc.compressionAlgorithms;
    const by = newClient({ "grpc.default_compression_algorithm": gzip });
    const encryptedData = "x".repeat(MiB);
    const made = await call(createWorkflow, { name: "w", encryptedData }, { by });
    expect(made.encryptedData).toHaveLength(MiB);
    by.close();
  });

  test("2,000 calls at once are all answered, after some that were too large", async () => {
    const tooLarge = { name: "w", encryptedData: "x".repeat(20 * MiB) };
    for (let i = 0; i < 5; i += 1) {
      expect(await codeOf(call(createWorkflow, tooLarge))).toBe(status.RESOURCE_EXHAUSTED);
    }
    const { id } = await call(createWorkflow, { name: "w" });
    const calls = Array.from({ length: 2000 }, () => codeOf(call(getWorkflow, { id })));
    expect(new Set(await Promise.all(calls))).toEqual(new Set([status.OK]));
  });

  test("a large entry of metadata is read past", async () => {
    const large = metadata({ "x-large": "x".repeat(12 * 1024) });
    expect(await codeOf(call(listWorkflows, {}, { metadata: large }))).toBe(status.OK);
  });

  test("a call that is cancelled ends, here and there", async () => {
    await call(registerAgent, { id: "sleeper" });
    const before = server.log.length;
    const begun = (it: grpc.ClientUnaryCall) => void setTimeout(() => it.cancel(), 200);
    const request = { id: "sleeper", wait: { seconds: 20n, nanos: 0 } };
    expect(await codeOf(call(executeAgent, request, { begun }))).toBe(status.CANCELLED);
    await expect.poll(() => server.log.slice(before).join()).toContain("CANCELLED");
  });

  test("a poll answers before its deadline; one that is over before it begins does not", async () => {
    await call(registerAgent, { id: "laptop" });
    const request = { wait: { seconds: 20n, nanos: 0 } };
    const answer = await call(pollTasks, request, { deadline: Date.now() + 2000 });
    expect(answer.tasks).toEqual([]);
    const over = call(pollTasks, request, { deadline: Date.now() - 1 });
    expect(await codeOf(over)).toBe(status.DEADLINE_EXCEEDED);
  });

  test("a stream that is read in bits comes whole and in order", async () => {
    const encryptedData = "x".repeat(20_000);
    for (let i = 0; i < 60; i += 1) {
      await call(pushState, { type: "note", entityId: `e${i}`, version: "1", encryptedData });
    }
    const stream = client.makeServerStreamRequest(
      `/${subscribe.parent.typeName}/${subscribe.name}`,
      (message: MessageShape<typeof subscribe.input>) =>
        Buffer.from(toBinary(subscribe.input, message)),
      (bytes) => fromBinary(subscribe.output, bytes),
      create(subscribe.input, { since: 0n }),
      metadata(),
    );
    const seen: string[] = [];
    for await (const update of stream) {
      const { record } = update as MessageShape<typeof subscribe.output>;
      if (record !== undefined) seen.push(record.entityId);
      if (seen.length === 60) break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => `e${i}`));
  });
});
