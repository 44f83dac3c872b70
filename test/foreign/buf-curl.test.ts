import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { startForTest } from "../cli/processes.ts";
import { startTestServer, type TestServer } from "../doors/server.ts";
import { bufPath, writeDescriptors } from "./buf.ts";

const run = promisify(execFile);

let server: TestServer;
let laneless: TestServer;
let descriptors: string;

beforeAll(async () => {
  server = await startTestServer();
  laneless = await startTestServer({ grpcLane: false });
  descriptors = await writeDescriptors(server.dataDir);
});
afterAll(() => Promise.all([server, laneless].map((it) => it[Symbol.asyncDispose]())));

const h2c = ["--protocol", "grpc", "--http2-prior-knowledge"];

const protocols = {
  grpc: { flags: h2c, at: () => server, url: () => server.grpcUrl },
  "grpc without its lane": { flags: h2c, at: () => laneless, url: () => laneless.grpcUrl },
  "grpc-web": { flags: ["--protocol", "grpcweb"], at: () => server, url: () => server.httpUrl },
  connect: { flags: ["--protocol", "connect"], at: () => server, url: () => server.httpUrl },
};

describe.each(Object.entries(protocols))("buf curl over %s", (name, { flags, at, url }) => {
  const sub = `me-${name}`;

  async function options(rpc: string, request: unknown): Promise<string[]> {
    const headers = [`authorization: Bearer ${await at().token({ sub })}`, "x-agent-id: laptop"];
    return [
      "curl",
      ...["--schema", descriptors, ...flags],
      ...headers.flatMap((header) => ["-H", header]),
      ...["-d", JSON.stringify(request)],
      `${url()}/sealflow.v1.${rpc}`,
    ];
  }

  async function curl(rpc: string, request: unknown = {}) {
    const { stdout } = await run(bufPath, await options(rpc, request));
    return JSON.parse(stdout);
  }

  test("makes a workflow, reads and lists it", async () => {
    const made = await curl("WorkflowService/CreateWorkflow", { name: "Count", description: "wc" });
    expect(made).toMatchObject({ name: "Count", status: "WORKFLOW_STATUS_DRAFT" });
    const { id } = made;
    expect(await curl("WorkflowService/GetWorkflow", { id })).toEqual(made);
    const list = await curl("WorkflowService/ListWorkflows");
    expect(list).toMatchObject({ workflows: [{ id }], total: 1 });
  });

  test("executes a workflow that nobody can run yet", async () => {
    const { id } = await curl("WorkflowService/CreateWorkflow", { name: "Later" });
    const result = await curl("WorkflowService/ExecuteWorkflow", { id, input: "[1]" });
    expect(result).toMatchObject({ workflowId: id, status: "EXECUTION_STATUS_QUEUED" });
    expect(result.hint).toMatch(/listening/);
  });

  test("registers an agent, reads and lists it", async () => {
    const made = await curl("AgentService/RegisterAgent", { id: "reader", capabilities: ["text"] });
    expect(made).toMatchObject({ id: "reader", capabilities: ["text"] });
    const found = await curl("AgentService/GetAgent", { id: "reader" });
    expect(found).toMatchObject({ id: "reader", capabilities: ["text"] });
    const list = await curl("AgentService/ListAgents");
    expect(list.agents).toContainEqual(expect.objectContaining({ id: "reader" }));
  });

  test("executes an agent that is not listening", async () => {
    await curl("AgentService/RegisterAgent", { id: "counter" });
    const result = await curl("AgentService/ExecuteAgent", { id: "counter", input: "[1]" });
    expect(result).toMatchObject({ agentId: "counter", status: "EXECUTION_STATUS_QUEUED" });
    expect(result.hint).toMatch(/listening/);
  });

  test("pushes a record, pulls it, and is streamed it from the beginning", async () => {
    const note = { type: "note", entityId: "n1", encryptedData: "c2VhbGVk", version: "1.0.0" };
    const pushed = await curl("SyncService/PushState", note);
    expect(pushed).toMatchObject({ status: "PUSH_STATUS_CREATED" });
    const pulled = await curl("SyncService/PullState", { since: "0" });
    expect(pulled).toMatchObject({ records: [note], cursor: pushed.record.cursor });
    expect(pulled.epoch).toBe(pushed.epoch);
    const updates = await firstMessages(await options("SyncService/Subscribe", { since: "0" }), 2);
    expect(updates).toMatchObject([
      { kind: "UPDATE_KIND_READY", epoch: pushed.epoch },
      { kind: "UPDATE_KIND_STATE_UPSERTED", record: note, cursor: pushed.record.cursor },
    ]);
  });

  test("shows why a call is refused, and ends with its code", async () => {
    const asked = run(bufPath, await options("WorkflowService/GetWorkflow", { id: "wf_none" }));
    const failure = await asked.then(
      () => expect.unreachable(),
      (cause: { code: number; stderr: string }) => cause,
    );
    const notFound = 5;
    expect(failure.code).toBe(notFound << 3);
    const error = JSON.parse(failure.stderr);
    expect(error).toMatchObject({ code: "not_found", message: "Workflow not found" });
    const [{ type, value }] = error.details;
    expect(type).toBe("google.rpc.ErrorInfo");
    const info = fromBinary(ErrorInfoSchema, Buffer.from(value, "base64"));
    expect(info).toMatchObject({ reason: "WORKFLOW_NOT_FOUND", domain: "sealflow" });
  });
});

/** What a stream prints first; then it is left. */
async function firstMessages(options: readonly string[], count: number): Promise<unknown[]> {
  const child = startForTest(bufPath, options);
  try {
    const messages: unknown[] = [];
    let text = "";
    for await (const chunk of child.stdout.setEncoding("utf8")) {
      text += chunk;
      // Each message is one JSON object; a line of its own closes it.
      const parts = text.split(/(?<=^\}\n|^\{.*\}\n)/m);
      text = parts.pop() ?? "";
      messages.push(...parts.map((part) => JSON.parse(part)));
      if (messages.length >= count) break;
    }
    return messages.slice(0, count);
  } finally {
    child.kill();
  }
}
