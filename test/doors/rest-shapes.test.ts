import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newOwner, type RestCaller } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const isoMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("fields and their order", () => {
  test("a workflow", async () => {
    const me = await newOwner(server);
    const draft = { name: "Count words", description: "wc over a text", encryptedData: "b3BhcXVl" };
    const made = await me.ok("POST", "/workflows", draft);
    expect(Object.keys(made)).toEqual([
      ...["id", "name", "description", "status", "encryptedData", "requiredCapabilities"],
      ...["createdAt", "updatedAt"],
    ]);
    expect(made).toMatchObject({ ...draft, status: "pending", requiredCapabilities: [] });
    expect(made.id).toMatch(/^wf_[0-9a-z]{26}$/);
    expect(made.createdAt).toMatch(isoMs);
    expect(made.updatedAt).toBe(made.createdAt);
    const { text } = await me.call("GET", "/workflows?status=pending&limit=10");
    expect(text).toBe(
      `{"workflows":[{"id":"${made.id}","name":"Count words","status":"pending",` +
        `"createdAt":"${made.createdAt}"}],"total":1,"hasMore":false}`,
    );
  });

  test("an execution, before and after", async () => {
    const me = await newOwner(server);
    const { id } = await me.ok("POST", "/workflows", { name: "w", encryptionKey: "key" });
    const first = await me.ok("POST", `/workflows/${id}/execute`);
    expect(Object.keys(first)).toEqual([
      ...["executionId", "workflowId", "status", "attempt", "createdAt", "hint"],
    ]);
    expect(first.executionId).toMatch(/^ex_[0-9a-z]{26}$/);
    const task = await takeTask(me);
    const beat = { leaseToken: task.leaseToken, progress: "half", lease: 60 };
    const beaten = await me.as("a").ok("POST", `/tasks/${task.id}/heartbeat`, beat);
    expect(Object.keys(beaten)).toEqual(["cancelRequested", "leaseLeft"]);
    expect(beaten).toMatchObject({ cancelRequested: false });
    expect(Number.parseFloat(beaten.leaseLeft)).toBeGreaterThan(50);
    const output = { words: 6, list: [1, null] };
    const report = { leaseToken: task.leaseToken, output };
    expect(await me.as("a").ok("POST", `/tasks/${task.id}/complete`, report)).toEqual({});

    const done = await me.ok("GET", `/executions/${task.id}`);
    expect(Object.keys(done)).toEqual([
      ...["executionId", "workflowId", "agentId", "status", "output", "attempt", "progress"],
      ...["keyReleases", "createdAt", "startedAt", "finishedAt"],
    ]);
    expect(done).toMatchObject({ agentId: "a", status: "completed", output, attempt: 1 });
    expect(done.keyReleases).toEqual([
      { agentId: "a", attempt: 1, time: expect.stringMatching(isoMs) },
    ]);
    expect(done.finishedAt).toMatch(isoMs);
    const list = await me.ok("GET", `/workflows/${id}/executions`);
    expect(Object.keys(list)).toEqual(["executions", "total", "hasMore"]);
    expect(list.executions[0]).not.toHaveProperty("output");
  });

  test("a task", async () => {
    const me = await newOwner(server);
    const { id } = await me.ok("POST", "/workflows", {
      ...{ name: "w", encryptedData: "data", encryptionKey: "key" },
    });
    await me.ok("POST", `/workflows/${id}/execute`, { input: [1, "two"] });
    const task = await takeTask(me, { lease: "7.5s" });
    expect(Object.keys(task)).toEqual([
      ...["id", "workflowId", "attempt", "leaseToken", "lease", "timeLeft", "name", "input"],
      ...["encryptedData", "encryptionKey"],
    ]);
    expect(task).toMatchObject({ input: [1, "two"], encryptedData: "data", encryptionKey: "key" });
    expect(task.lease).toMatch(/^\d+(\.\d+)?s$/);
    expect(Number.parseFloat(task.lease)).toBeCloseTo(7.5, 0);
    expect(Number.parseFloat(task.timeLeft)).toBeCloseTo(900, -1);
    await me.as("a").ok("POST", `/tasks/${task.id}/fail`, {
      leaseToken: task.leaseToken,
      error: { code: "NO_TEXT", message: "none" },
      retryable: false,
    });
    const ended = await me.ok("GET", `/executions/${task.id}`);
    expect(ended.error).toEqual({ code: "NO_TEXT", message: "none" });
    await me.as("a").refused("LEASE_LOST", "POST", `/tasks/${task.id}/heartbeat`, {
      leaseToken: task.leaseToken,
    });
  });

  test("an agent", async () => {
    const me = await newOwner(server);
    const made = await me.ok("POST", "/agents/register", { id: "a", type: "worker" });
    expect(Object.keys(made)).toEqual([
      ...["id", "type", "name", "capabilities", "status", "isPublic", "registeredAt", "lastSeenAt"],
    ]);
    expect(made).toMatchObject({ name: "a", status: "active", capabilities: [], isPublic: false });
    const list = await me.ok("GET", "/agents?status=active");
    expect(list).toEqual({ agents: [made], total: 1, hasMore: false });
  });

  test("a push, a pull and a conflict", async () => {
    const me = await newOwner(server);
    const note = { type: "note", entityId: "n1", encryptedData: "c2VhbGVk", version: "1.0.0" };
    const pushed = await me.ok("POST", "/sync/push", note);
    expect(Object.keys(pushed)).toEqual(["status", "record", "epoch"]);
    expect(Object.keys(pushed.record)).toEqual([
      ...["type", "entityId", "version", "deleted", "revision", "cursor", "agentId"],
      ...["createdAt", "updatedAt"],
    ]);
    expect(pushed.record).toMatchObject({ deleted: false, revision: 1, agentId: "laptop" });
    expect(String(pushed.record.cursor)).toMatch(/^\d{16}$/);
    const pulled = await me.ok("GET", "/sync/pull?since=0");
    expect(Object.keys(pulled)).toEqual(["records", "cursor", "hasMore", "serverTime", "epoch"]);
    expect(pulled).toMatchObject({ cursor: pushed.record.cursor, hasMore: false });
    expect(pulled.records).toEqual([{ ...pushed.record, encryptedData: "c2VhbGVk" }]);
    const conflict = await me.call("POST", "/sync/push", {
      body: { ...note, encryptedData: "b3RoZXI=" },
    });
    expect(conflict.status).toBe(409);
    expect(conflict.body.error).toMatchObject({
      code: "SYNC_CONFLICT",
      details: { reason: "SAME_VERSION", current: pulled.records[0] },
    });
    const ahead = await me.call("GET", `/sync/pull?since=${pulled.cursor + 1}`);
    expect(ahead.status).toBe(409);
    expect(ahead.body.error).toMatchObject({
      code: "SYNC_CURSOR_AHEAD",
      details: { cursor: pulled.cursor },
    });
  });

  test("lifecycle changes, when they are asked for", async () => {
    const me = await newOwner(server);
    const { id } = await me.ok("POST", "/workflows", { name: "w" });
    expect(await me.ok("GET", "/sync/pull")).not.toHaveProperty("changes");
    const { changes } = await me.ok("GET", "/sync/pull?kinds=workflow,agent");
    expect(changes).toEqual([
      { kind: "workflow", id, status: "pending", deleted: false, time: expect.any(String) },
    ]);
  });
});

async function takeTask(me: RestCaller, poll: object = {}) {
  await me.ok("POST", "/agents/register", { id: "a" });
  const { tasks } = await me.as("a").ok("POST", "/tasks/poll", { wait: 5, ...poll });
  return tasks[0];
}

describe("values", () => {
  test.each([1.5, "1.5", "1.5s", "0s", 0])("a duration of %j is read", async (wait) => {
    const me = await newOwner(server);
    await me.ok("POST", "/agents/register", { id: "a" });
    const { executionId } = await me.ok("POST", "/agents/a/execute", { wait: 0 });
    await me.ok("POST", `/executions/${executionId}/cancel`);
    await me.ok("GET", `/executions/${executionId}?wait=${wait}`);
    await me.ok("POST", "/agents/a/execute", { wait: 0, timeout: "1s", startTimeout: 1e9 });
  });

  test.each(["types=note&types=todo", "types=note,todo", "types=no%74e,todo&other=1"])(
    "a list in a query: %s",
    async (query) => {
      const me = await newOwner(server);
      const push = (type: string, entityId: string) =>
        me.ok("POST", "/sync/push", { type, entityId, encryptedData: "x", version: "1" });
      await push("note", "1");
      await push("todo", "2");
      await push("note,todo", "3");
      const { records } = await me.ok("GET", `/sync/pull?${query}`);
      expect(records.map(({ entityId }: { entityId: string }) => entityId)).toEqual(["1", "2"]);
      const literal = await me.ok("GET", "/sync/pull?types=note%2Ctodo");
      expect(literal.records).toMatchObject([{ entityId: "3" }]);
    },
  );

  test("unknown fields and parameters are ignored", async () => {
    const me = await newOwner(server);
    const body = { name: "w", owner: "other", nested: { a: 1 }, id: "mine" };
    const made = await me.ok("POST", "/workflows?dryRun=true", body);
    expect(made).not.toHaveProperty("owner");
    expect(made.id).not.toBe("mine");
    expect(await me.ok("GET", "/workflows?color=red&limit=1")).toMatchObject({ total: 1 });
  });

  test("null is absent", async () => {
    const me = await newOwner(server);
    const made = await me.ok("POST", "/workflows", { name: "w", description: null, agentId: null });
    expect(made.description).toBe("");
  });

  test("pages lead on with their token", async () => {
    const me = await newOwner(server);
    for (const name of ["1", "2", "3"]) await me.ok("POST", "/workflows", { name });
    const first = await me.ok("GET", "/workflows?limit=2");
    expect(Object.keys(first)).toEqual(["workflows", "total", "hasMore", "nextPageToken"]);
    expect(first).toMatchObject({ total: 3, hasMore: true });
    const token = encodeURIComponent(first.nextPageToken);
    const second = await me.ok("GET", `/workflows?limit=2&pageToken=${token}`);
    expect(second).toMatchObject({ workflows: [{ name: "1" }], total: 3, hasMore: false });
    expect(second).not.toHaveProperty("nextPageToken");
  });
});
