import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AgentSchema, AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import {
  ExecuteWorkflowRequestSchema,
  GetWorkflowRequestSchema,
  WorkflowSchema,
  WorkflowService,
  WorkflowStatus,
  WorkflowStatusSchema,
} from "../../gen/sealflow/v1/workflow_pb.ts";
import { failureOf, newOwner, restCall, rpcCaller } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

// What a client can rely on that has read the interface description and nothing else: it sends and
// reads only what is named there, and pages nothing.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const payload = { encryptedData: "c2VhbGVk", encryptionKey: "a2V5" };
const workflow = { name: "Count words", description: "wc", ...payload };
const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

describe("the seven paths of REST", () => {
  test("workflows are created, listed by status and executed", async () => {
    const me = await newOwner(server);
    const before = await me.ok("GET", "/workflows");
    expect(before).toEqual({ workflows: [], total: 0, hasMore: false });
    await me.ok("POST", "/workflows", workflow);

    const list = await me.ok("GET", "/workflows?status=pending&limit=10");
    expect(Object.keys(list).sort()).toEqual(["hasMore", "total", "workflows"]);
    expect(list).toMatchObject({ total: 1, hasMore: false });
    const [item] = list.workflows;
    expect(Object.keys(item)).toEqual(["id", "name", "status", "createdAt"]);
    expect(item).toMatchObject({ name: "Count words", status: "pending" });
    expect(item.createdAt).toMatch(isoUtc);

    const run = await me.call("POST", `/workflows/${item.id}/execute`, {
      body: { input: { text: "to be" } },
    });
    expect(run.status).toBeLessThan(300);
    expect(await me.ok("GET", "/workflows?status=running")).toMatchObject({ total: 0 });
    await me.ok("POST", "/agents/register", { id: "counter", type: "worker", capabilities: [] });
    await me.as("counter").ok("POST", "/tasks/poll", { wait: 5 });
    const running = await me.ok("GET", "/workflows?status=running&limit=50");
    expect(running.workflows).toMatchObject([{ id: item.id, status: "running" }]);
  });

  test("agents are registered and listed", async () => {
    const me = await newOwner(server);
    const agent = { id: "counter", type: "worker", capabilities: ["text", "count"] };
    expect((await me.call("POST", "/agents/register", { body: agent })).status).toBeLessThan(300);
    const text = JSON.stringify(await me.ok("GET", "/agents?status=active"));
    expect(text).toContain('"counter"');
    expect(JSON.stringify(await me.ok("GET", "/agents"))).toContain('"counter"');
  });

  test("state is pushed, and pulled since a time of the client's own clock", async () => {
    const me = await newOwner(server);
    const push = (entityId: string) => ({
      ...{ type: "workflow", entityId, encryptedData: `data of ${entityId}`, version: "1.0.0" },
    });
    await me.ok("POST", "/sync/push", push("first"));
    await new Promise((resolve) => setTimeout(resolve, 5));
    const since = Date.now();
    await me.ok("POST", "/sync/push", push("second"));
    const all = await me.ok("GET", "/sync/pull");
    expect(all.records).toMatchObject([push("first"), push("second")]);
    expect((await me.ok("GET", "/sync/pull?since=0")).records).toHaveLength(2);
    expect((await me.ok("GET", `/sync/pull?since=${since}`)).records).toMatchObject([
      push("second"),
    ]);
    const later = await me.ok("GET", `/sync/pull?since=${Date.now() + 60_000}`);
    expect(later.records).toEqual([]);
  });

  test("who does not page misses nothing", async () => {
    const me = await newOwner(server);
    const records = Array.from({ length: 500 }, (_, i) => ({
      ...{ type: "note", entityId: `n${i}`, encryptedData: "x".repeat(100), version: "1" },
    }));
    await me.ok("POST", "/sync/push", { records });
    await me.ok("POST", "/sync/push", {
      records: records.map((record) => ({ ...record, type: "other" })),
    });
    await me.ok("POST", "/sync/push", { ...records[0], type: "last" });
    expect((await me.ok("GET", "/sync/pull?since=0")).records).toHaveLength(1001);
  });

  test("what fails is told in the shape of the description", async () => {
    const me = await newOwner(server);
    const answer = await me.call("POST", "/workflows/nothing/execute", { body: { input: {} } });
    expect(answer.status).toBe(404);
    expect(answer.body).toEqual({
      success: false,
      error: {
        code: "WORKFLOW_NOT_FOUND",
        message: expect.any(String),
        details: { workflowId: "nothing" },
      },
    });
    const refused = await restCall(server, "GET /workflows", {
      headers: { authorization: "Bearer nonsense", "x-agent-id": "laptop" },
    });
    expect(refused.status).toBe(401);
    expect(refused.body).toEqual({
      success: false,
      error: { code: "UNAUTHORIZED", message: expect.any(String), details: {} },
    });
  });
});

describe("the eleven rpcs", () => {
  test("workflows", async () => {
    const { workflows, agents } = rpcCaller(server, await newOwner(server));
    const made = await workflows.createWorkflow(workflow);
    expect(made).toMatchObject({ name: "Count words", status: WorkflowStatus.DRAFT });
    const read = await workflows.getWorkflow({ id: made.id });
    expect(read).toMatchObject({ ...made, encryptedData: payload.encryptedData });
    expect(read.createdAt?.seconds).toBeGreaterThan(1_700_000_000n);
    expect(read.updatedAt?.seconds).toBeGreaterThan(1_700_000_000n);
    expect((await workflows.listWorkflows({})).workflows).toMatchObject([{ id: made.id }]);
    await agents.registerAgent({ id: "counter" });
    await expect(workflows.executeWorkflow({ id: made.id, input: "{}" })).resolves.toBeDefined();
    await expect(workflows.executeWorkflow({ id: made.id, input: "" })).resolves.toBeDefined();
  });

  test("agents", async () => {
    const { agents } = rpcCaller(server, await newOwner(server));
    const made = await agents.registerAgent({ id: "counter", capabilities: ["text"] });
    expect(made).toMatchObject({ id: "counter", capabilities: ["text"], isPublic: false });
    expect(await agents.getAgent({ id: "counter" })).toMatchObject({ id: "counter" });
    expect((await agents.listAgents({})).agents).toMatchObject([{ id: "counter" }]);
    await expect(agents.executeAgent({ id: "counter", input: "{}" })).resolves.toBeDefined();
    const failure = await failureOf(agents.getAgent({ id: "nobody" }));
    expect([failure.code, failure.rawMessage]).toEqual([Code.NotFound, "Agent not found"]);
  });

  test("state", async () => {
    const { sync } = rpcCaller(server, await newOwner(server));
    const record = { type: "note", entityId: "n1", encryptedData: "c2VhbGVk", version: "1.0.0" };
    const since = BigInt(Date.now());
    const updates = sync.subscribe({ since })[Symbol.asyncIterator]();
    await updates.next();
    await sync.pushState(record);
    expect((await sync.pullState({ since })).records).toMatchObject([record]);
    let update = await updates.next();
    while (!update.done && update.value.record === undefined) update = await updates.next();
    expect(update.value?.record).toMatchObject(record);
    await updates.return?.();
  });

  test("the same two values travel as metadata", async () => {
    const { token } = await newOwner(server);
    const { workflows } = rpcCaller(server, { token: `${token}x`, agentId: "laptop" });
    const failure = await failureOf(workflows.listWorkflows({}));
    expect(failure).toBeInstanceOf(ConnectError);
    expect(failure.code).toBe(Code.Unauthenticated);
  });
});

describe("the contract", () => {
  test("has the rpcs that are named, each under its name", () => {
    const named = {
      WorkflowService: ["GetWorkflow", "ListWorkflows", "CreateWorkflow", "ExecuteWorkflow"],
      AgentService: ["GetAgent", "ListAgents", "RegisterAgent", "ExecuteAgent"],
      SyncService: ["PushState", "PullState", "Subscribe"],
    };
    for (const service of [WorkflowService, AgentService, SyncService]) {
      const known = named[service.name as keyof typeof named];
      expect(service.methods.map(({ name }) => name)).toEqual(expect.arrayContaining(known));
    }
    expect(SyncService.method.subscribe.methodKind).toBe("server_streaming");
    expect(WorkflowService.method.executeWorkflow.output.name).toBe("ExecutionResult");
    expect(AgentService.method.executeAgent.output.name).toBe("AgentResult");
    expect(SyncService.method.subscribe.output.name).toBe("SyncUpdate");
  });

  test("has the fields and numbers that are named", () => {
    expect(fieldsOf(WorkflowSchema)).toMatchObject({
      ...{ id: "1 string", name: "2 string", description: "3 string" },
      ...{ status: "4 enum WorkflowStatus", encrypted_data: "5 string" },
      ...{ created_at: "6 message Timestamp", updated_at: "7 message Timestamp" },
    });
    expect(fieldsOf(AgentSchema)).toMatchObject({
      ...{ id: "1 string", name: "2 string", capabilities: "3 list of string" },
      ...{ status: "4 enum AgentStatus", is_public: "5 bool" },
    });
    expect(fieldsOf(GetWorkflowRequestSchema)).toMatchObject({ id: "1 string" });
    const { id, input } = fieldsOf(ExecuteWorkflowRequestSchema);
    expect([id, input]).toEqual(["1 string", "2 string"]);
  });

  test("has the numbers of WorkflowStatus", () => {
    const numbers = WorkflowStatusSchema.values.map(({ name, number }) => `${name} ${number}`);
    expect(numbers).toEqual([
      "WORKFLOW_STATUS_UNSPECIFIED 0",
      "WORKFLOW_STATUS_DRAFT 1",
      "WORKFLOW_STATUS_RUNNING 2",
      "WORKFLOW_STATUS_COMPLETED 3",
      "WORKFLOW_STATUS_FAILED 4",
    ]);
  });
});

function fieldsOf({ fields }: DescMessage): Record<string, string> {
  return Object.fromEntries(
    fields.map((field) => {
      const isList = field.fieldKind === "list" ? "list of " : "";
      const named = field.message ?? field.enum;
      const kind = field.message === undefined ? "enum" : "message";
      const scalars: Record<number, string> = { 8: "bool", 9: "string" };
      const type = named === undefined ? scalars[field.scalar ?? 0] : `${kind} ${named.name}`;
      return [field.name, `${field.number} ${isList}${type}`];
    }),
  );
}
