import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer, unlimited } from "../doors/server.ts";

// The usual gRPC library of Node, with the contract's own files: no stub of ours is involved.

type Fields = Record<string, unknown>;
type Stream = grpc.ClientReadableStream<Fields>;

const protoFolder = fileURLToPath(new URL("../../proto", import.meta.url));
const contract = loadSync(
  ["workflow", "agent", "sync"].map((name) => `sealflow/v1/${name}.proto`),
  {
    includeDirs: [protoFolder, `${protoFolder}/third_party`],
    keepCase: true,
    longs: String,
    enums: String,
    defaults: true,
  },
);

let server: TestServer;
let token: string;
const clients = new Map<string, grpc.Client>();

describe.each([
  ["the lane", { grpcLane: true }],
  ["the Connect adapter", { grpcLane: false }],
])("a program with grpc-js and proto-loader, through %s", (_, settings) => {
  beforeAll(async () => {
    server = await startTestServer({ ...settings, rateLimits: { ...unlimited, workflows: 50 } });
    token = await server.token({ sub: "me" });
    const loaded = grpc.loadPackageDefinition(contract);
    const { v1 } = loaded["sealflow"] as { v1: Record<string, grpc.ServiceClientConstructor> };
    for (const name of ["WorkflowService", "AgentService", "SyncService"]) {
      const Client = v1[name];
      if (Client === undefined) throw new Error(`no ${name}`);
      const address = new URL(server.grpcUrl).host;
      clients.set(name, new Client(address, grpc.credentials.createInsecure()));
    }
  });
  afterAll(async () => {
    for (const client of clients.values()) client.close();
    await server[Symbol.asyncDispose]();
  });

  test("makes, reads, lists and executes workflows", async () => {
    const draft = { name: "Count", description: "wc", required_capabilities: ["none-has-it"] };
    const made = await call("WorkflowService.CreateWorkflow", draft);
    expect(made).toMatchObject({ ...draft, status: "WORKFLOW_STATUS_DRAFT" });
    const { id } = made;
    expect(await call("WorkflowService.GetWorkflow", { id })).toEqual(made);
    const list = await call("WorkflowService.ListWorkflows", { status: "WORKFLOW_STATUS_DRAFT" });
    expect(list).toMatchObject({ workflows: [{ id }], total: 1, has_more: false });
    const run = await call("WorkflowService.ExecuteWorkflow", { id, input: '{"text":"to be"}' });
    expect(run).toMatchObject({ workflow_id: id, status: "EXECUTION_STATUS_QUEUED", attempt: 0 });
  });

  test("registers, reads, lists and executes agents, and is one", async () => {
    const agent = { id: "counter", capabilities: ["text"], is_public: false };
    expect(await call("AgentService.RegisterAgent", agent)).toMatchObject(agent);
    expect(await call("AgentService.GetAgent", { id: "counter" })).toMatchObject(agent);
    expect(await call("AgentService.ListAgents")).toMatchObject({ agents: [agent], total: 1 });
    const counter = { agentId: "counter" };
    const polled = call("AgentService.PollTasks", { wait: { seconds: 10 } }, counter);
    const asked = call("AgentService.ExecuteAgent", { id: "counter", wait: { seconds: 10 } });
    const [task] = (await polled)["tasks"] as Fields[];
    const report = { task_id: task?.["id"], lease_token: task?.["lease_token"], output: "7" };
    await call("AgentService.CompleteTask", report, counter);
    expect(await asked).toMatchObject({ status: "EXECUTION_STATUS_COMPLETED", output: "7" });
  });

  test("pushes and pulls state, and is streamed what was pushed", async () => {
    const note = { type: "note", entity_id: "n1", encrypted_data: "x", version: "1" };
    const stream = subscribe();
    const updates = stream[Symbol.asyncIterator]();
    expect((await updates.next()).value).toMatchObject({ kind: "UPDATE_KIND_READY" });
    expect((await updates.next()).value).toMatchObject({ kind: "UPDATE_KIND_UP_TO_DATE" });
    const pushed = await call("SyncService.PushState", note);
    expect(pushed).toMatchObject({ status: "PUSH_STATUS_CREATED" });
    const { value } = await updates.next();
    expect(value).toMatchObject({ kind: "UPDATE_KIND_STATE_UPSERTED", record: note });
    const ended = updates.next();
    stream.cancel();
    await expect(ended).rejects.toMatchObject({ code: grpc.status.CANCELLED });
    const pulled = await call("SyncService.PullState", { since: 0 });
    expect(pulled).toMatchObject({ records: [note], cursor: value.cursor });
  });

  test("is told the rate limits, and why a call is refused", async () => {
    const told: grpc.Metadata[] = [];
    const refused = call("WorkflowService.GetWorkflow", { id: "wf_none" }, { told });
    const error = await refused.then(
      () => expect.unreachable(),
      (cause: grpc.ServiceError) => cause,
    );
    expect(error).toMatchObject({ code: grpc.status.NOT_FOUND, details: "Workflow not found" });
    const [details] = error.metadata.get("grpc-status-details-bin");
    expect(Buffer.from(details ?? "").includes("WORKFLOW_NOT_FOUND")).toBe(true);
    await call("WorkflowService.ListWorkflows", {}, { told });
    expect(told.at(-1)?.get("x-ratelimit-limit")).toEqual(["50"]);
  });

  test("without its credentials is not let in", async () => {
    const anonymous = call("WorkflowService.ListWorkflows", {}, { metadata: new grpc.Metadata() });
    await expect(anonymous).rejects.toMatchObject({ code: grpc.status.UNAUTHENTICATED });
  });

  test("has its deadline kept: an execute answers before it, a stream ends with it", async () => {
    await call("AgentService.RegisterAgent", { id: "sleeper" });
    const execute = { id: "sleeper", wait: { seconds: 30 } };
    const deadline = () => new Date(Date.now() + 1000);
    const run = await call("AgentService.ExecuteAgent", execute, { deadline: deadline() });
    expect(run).toMatchObject({ status: "EXECUTION_STATUS_QUEUED" });
    const stream = subscribe(deadline());
    const drained = (async () => {
      for await (const _ of stream);
    })();
    await expect(drained).rejects.toMatchObject({ code: grpc.status.DEADLINE_EXCEEDED });
  });
});

interface Settings {
  readonly agentId?: string;
  readonly metadata?: grpc.Metadata;
  readonly deadline?: Date;
  /** Is given what the server says beside its answer. */
  readonly told?: grpc.Metadata[];
}

/** One unary call, e.g. of `SyncService.PullState`. */
function call(rpc: string, request: Fields = {}, settings: Settings = {}): Promise<Fields> {
  const { agentId = "laptop", metadata = metadataOf(agentId), deadline, told } = settings;
  const { client, method } = stubOf(rpc);
  return new Promise((resolve, reject) => {
    const started: grpc.ClientUnaryCall = Reflect.apply(method, client, [
      request,
      metadata,
      deadline === undefined ? {} : { deadline },
      (error: grpc.ServiceError | null, answer: Fields) => {
        if (error === null) resolve(answer);
        else reject(error);
      },
    ]);
    started.on("metadata", (headers) => told?.push(headers));
  });
}

function subscribe(deadline?: Date): Stream {
  const { client, method } = stubOf("SyncService.Subscribe");
  const options = deadline === undefined ? {} : { deadline };
  return Reflect.apply(method, client, [{}, metadataOf("phone"), options]);
}

function stubOf(rpc: string) {
  const [service = "", name = ""] = rpc.split(".");
  const client = clients.get(service);
  const method: unknown = client === undefined ? undefined : Reflect.get(client, name);
  if (typeof method !== "function") throw new Error(`no ${rpc}`);
  return { client, method };
}

function metadataOf(agentId: string): grpc.Metadata {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  metadata.set("x-agent-id", agentId);
  return metadata;
}
