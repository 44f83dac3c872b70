import { expect } from "vitest";
import type { Json } from "./canonical.ts";
import type { Reply } from "./doors.ts";
import type { RpcName } from "./rest-calls.ts";
import { streamScenarios } from "./stream-scenarios.ts";

/** What a scenario can do: call as one of its owner's agents, or as a stranger. */
export interface Stage {
  call(rpc: RpcName, request?: Json, as?: CallAs): Promise<Reply>;
  /** The answer of a call that must succeed. */
  ok(rpc: RpcName, request?: Json, as?: CallAs): Promise<Answer>;
  /** The details of a call that must fail for this reason. */
  refused(reason: string, rpc: RpcName, request?: Json, as?: CallAs): Promise<Answer>;
}

export interface CallAs {
  readonly agent?: string;
  readonly stranger?: boolean;
  readonly headers?: Record<string, string>;
}

// biome-ignore lint/suspicious/noExplicitAny: a scenario reads answers of every shape.
export type Answer = any;

const payload = "eyJhbGciOiJub25lIn0";

/**
 * What a caller sees. Each runs through every door, against an owner of its own; what the doors
 * answer must be the same but for ids, tokens and times.
 */
export const scenarios: Record<string, (stage: Stage) => Promise<void>> = {
  async "a workflow from its making to its deletion"({ ok, refused }) {
    const made = await ok("createWorkflow", {
      name: "Count words",
      description: "wc",
      encryptedData: payload,
      encryptionKey: "never shown",
      requiredCapabilities: ["b", "a", "b"],
    });
    expect(made).toMatchObject({ name: "Count words", status: "pending", encryptedData: payload });
    expect(made.requiredCapabilities).toEqual(["a", "b"]);
    expect(JSON.stringify(made)).not.toContain("never shown");
    expect(await ok("getWorkflow", { id: made.id })).toEqual(made);

    const list = await ok("listWorkflows", { status: "pending", limit: 10 });
    expect(list.total).toBe(1);
    expect(list.workflows[0]).toMatchObject({ id: made.id, name: "Count words" });
    expect(list.workflows[0].encryptedData).toBeUndefined();
    expect((await ok("listWorkflows", { status: "running" })).workflows ?? []).toEqual([]);

    const changed = await ok("updateWorkflow", {
      id: made.id,
      name: "Count lines",
      description: "",
      requiredCapabilities: [],
    });
    expect(changed).toMatchObject({ name: "Count lines", encryptedData: payload });
    expect(changed.description).toBeUndefined();
    await refused("VALIDATION_ERROR", "updateWorkflow", { id: made.id, name: "" });

    await refused("WORKFLOW_NOT_FOUND", "getWorkflow", { id: made.id }, { stranger: true });
    await refused("WORKFLOW_NOT_FOUND", "deleteWorkflow", { id: made.id }, { stranger: true });
    await ok("deleteWorkflow", { id: made.id });
    const details = await refused("WORKFLOW_NOT_FOUND", "getWorkflow", { id: made.id });
    expect(details.workflowId).toBe(made.id);
    await refused("WORKFLOW_NOT_FOUND", "deleteWorkflow", { id: made.id });
    await refused("WORKFLOW_NOT_FOUND", "executeWorkflow", { id: made.id });
  },

  async "rules of a new workflow"({ ok, refused }) {
    const missing = await refused("VALIDATION_ERROR", "createWorkflow", {});
    expect(missing.fields).toEqual([{ field: "name" }]);
    const all = await refused("VALIDATION_ERROR", "createWorkflow", {
      name: "n".repeat(201),
      description: "d".repeat(4001),
      encryptionKey: "k".repeat(8193),
      requiredCapabilities: ["fine", "not fine"],
      requestId: "r".repeat(129),
    });
    expect(all.fields.map(({ field }: { field: string }) => field)).toEqual([
      "name",
      "description",
      "encryptionKey",
      "requiredCapabilities[1]",
      "requestId",
    ]);
    await refused("VALIDATION_ERROR", "createWorkflow", { name: "a\0b" });
    await refused("VALIDATION_ERROR", "createWorkflow", {
      name: "a",
      encryptedData: "x".repeat(1024 * 1024 + 1),
    });
    await ok("createWorkflow", { name: "🌱".repeat(200), encryptedData: "x".repeat(1024 * 1024) });
    await refused("AGENT_NOT_FOUND", "createWorkflow", { name: "a", agentId: "nobody" });
  },

  async "pages of workflows"({ ok, refused }) {
    for (const name of ["1", "2", "3", "4", "5"]) await ok("createWorkflow", { name });
    const first = await ok("listWorkflows", { limit: 2 });
    expect(first).toMatchObject({ total: 5, hasMore: true });
    const second = await ok("listWorkflows", { limit: 2, pageToken: first.nextPageToken });
    const third = await ok("listWorkflows", { limit: 2, pageToken: second.nextPageToken });
    const names = [first, second, third].flatMap((page) =>
      page.workflows.map(({ name }: { name: string }) => name),
    );
    expect(names).toEqual(["5", "4", "3", "2", "1"]);
    expect(third.hasMore).toBeUndefined();
    expect((await ok("listWorkflows", { limit: 1_000_000_000 })).workflows).toHaveLength(5);
    for (const limit of [0, -1]) {
      const details = await refused("VALIDATION_ERROR", "listWorkflows", { limit });
      expect(details.fields).toEqual([{ field: "limit" }]);
    }
    await refused("VALIDATION_ERROR", "listWorkflows", { pageToken: "garbage" });
    const other = { status: "failed", pageToken: first.nextPageToken };
    await refused("VALIDATION_ERROR", "listWorkflows", other);
  },

  async "execute before anybody can, then with an agent"({ ok }) {
    const { id } = await ok("createWorkflow", { name: "w", encryptedData: payload });
    const early = await ok("executeWorkflow", { id, input: { text: "to be" } });
    expect(early).toMatchObject({ workflowId: id, status: "pending" });
    expect(early.hint).toContain("No agent is listening");
    expect((await ok("getWorkflow", { id })).status).toBe("pending");

    await ok("registerAgent", { id: "counter", type: "worker", capabilities: ["text"] });
    const taken = await ok("pollTasks", { wait: 5 }, { agent: "counter" });
    const [task] = taken.tasks;
    expect(task).toMatchObject({
      id: early.executionId,
      workflowId: id,
      attempt: 1,
      name: "w",
      input: { text: "to be" },
      encryptedData: payload,
    });
    expect((await ok("getWorkflow", { id })).status).toBe("running");
    expect((await ok("getExecution", { id: task.id })).status).toBe("running");
    const report = { taskId: task.id, leaseToken: task.leaseToken, output: { words: 2 } };
    await ok("completeTask", report, { agent: "counter" });
    await ok("completeTask", report, { agent: "counter" });
    const done = await ok("getExecution", { id: task.id });
    expect(done).toMatchObject({ status: "completed", output: { words: 2 }, agentId: "counter" });
    expect((await ok("getWorkflow", { id })).status).toBe("completed");
    expect((await ok("listExecutions", { workflowId: id })).executions[0].output).toBeUndefined();

    const waiting = ok("executeWorkflow", { id, input: {} });
    const [second] = (await ok("pollTasks", { wait: 5 }, { agent: "counter" })).tasks;
    await ok("completeTask", { ...leaseOf(second), output: [1, "two"] }, { agent: "counter" });
    expect(await waiting).toMatchObject({ status: "completed", output: [1, "two"] });
  },

  async "failures, retries and releases"({ ok, refused }) {
    const { id } = await ok("createWorkflow", { name: "w" });
    await ok("registerAgent", { id: "a" });
    await ok("registerAgent", { id: "b" });
    await ok("executeWorkflow", { id, wait: 0, maxAttempts: 2 });
    const poll = async (agent: string) => (await ok("pollTasks", { wait: 5 }, { agent })).tasks[0];

    const first = await poll("a");
    await ok("releaseTask", leaseOf(first), { agent: "a" });
    const again = await poll("a");
    expect(again.attempt).toBe(1);
    expect(again.leaseToken).not.toBe(first.leaseToken);
    await refused("LEASE_LOST", "completeTask", leaseOf(first), { agent: "a" });
    await refused("TASK_NOT_FOUND", "completeTask", leaseOf(again), { agent: "b" });
    await refused("AGENT_NOT_FOUND", "completeTask", leaseOf(again), { agent: "nobody" });

    const error = { code: "NO_TEXT", message: "there was none" };
    const failure = { ...leaseOf(again), error, retryAfter: 0 };
    await ok("failTask", failure, { agent: "a" });
    await ok("failTask", failure, { agent: "a" });
    const last = await poll("b");
    expect(last.attempt).toBe(2);
    await ok("failTask", { ...leaseOf(last), error }, { agent: "b" });
    const ended = await ok("getExecution", { id: last.id });
    expect(ended).toMatchObject({ status: "failed", error, attempt: 2, agentId: "b" });
    expect((await ok("getWorkflow", { id })).status).toBe("failed");
    await refused("LEASE_LOST", "completeTask", leaseOf(last), { agent: "b" });
  },

  async "who may run what"({ ok, refused }) {
    await ok("registerAgent", { id: "mine" });
    await ok("registerAgent", { id: "also" });
    const named = await ok("createWorkflow", { name: "w", agentId: "mine" });
    await refused("VALIDATION_ERROR", "executeWorkflow", { id: named.id, agentId: "also" });
    const free = await ok("createWorkflow", { name: "w" });
    await refused("AGENT_NOT_FOUND", "executeWorkflow", { id: free.id, agentId: "nobody" });
    const waiting = await ok("executeWorkflow", { id: named.id });
    expect(waiting.hint).toContain("mine");
    expect((await ok("pollTasks", { wait: 0 }, { agent: "also" })).tasks ?? []).toEqual([]);
    expect((await ok("pollTasks", { wait: 0 }, { agent: "mine" })).tasks).toHaveLength(1);

    const able = await ok("createWorkflow", { name: "w", requiredCapabilities: ["gpu"] });
    const unable = await ok("executeWorkflow", { id: able.id });
    expect((await ok("pollTasks", { wait: 0 }, { agent: "also" })).tasks ?? []).toEqual([]);
    const { waiting: reason } = await ok("getExecution", { id: unable.executionId });
    expect(reason.requiredCapabilities).toEqual(["gpu"]);
    expect(reason.agents).toHaveLength(2);
    for (const agent of reason.agents) {
      expect(agent).toMatchObject({ listening: true, missingCapabilities: ["gpu"] });
    }
    await ok("registerAgent", { id: "also", capabilities: ["gpu", "text"] });
    expect((await ok("pollTasks", { wait: 0 }, { agent: "also" })).tasks).toHaveLength(1);
  },

  async cancel({ ok, refused }) {
    const { id } = await ok("createWorkflow", { name: "w" });
    await ok("registerAgent", { id: "a" });
    const queued = await ok("executeWorkflow", { id, wait: 0 });
    const cancelled = await ok("cancelExecution", { id: queued.executionId });
    expect(cancelled.status).toBe("cancelled");
    expect((await ok("cancelExecution", { id: queued.executionId })).status).toBe("cancelled");
    expect((await ok("getWorkflow", { id })).status).toBe("pending");

    await ok("executeWorkflow", { id, wait: 0 });
    const [held] = (await ok("pollTasks", { wait: 5 }, { agent: "a" })).tasks;
    expect((await ok("cancelExecution", { id: held.id })).status).toBe("running");
    await ok("releaseTask", leaseOf(held), { agent: "a" });
    expect((await ok("getExecution", { id: held.id })).status).toBe("cancelled");
    expect((await ok("getWorkflow", { id })).status).toBe("failed");
    await refused("EXECUTION_NOT_FOUND", "cancelExecution", { id: held.id }, { stranger: true });
    await refused("EXECUTION_NOT_FOUND", "getExecution", { id: held.id }, { stranger: true });
  },

  async "a workflow that is active cannot be changed, and can be deleted"({ ok, refused }) {
    const { id } = await ok("createWorkflow", { name: "w" });
    const { executionId } = await ok("executeWorkflow", { id, wait: 0 });
    const details = await refused("WORKFLOW_ACTIVE", "updateWorkflow", { id, name: "x" });
    expect(details.workflowId).toBe(id);
    await ok("deleteWorkflow", { id });
    expect((await ok("getExecution", { id: executionId })).status).toBe("cancelled");
  },

  async "the same request twice"({ ok, refused }) {
    const asked = { name: "w", encryptedData: payload, requestId: "r1" };
    const made = await ok("createWorkflow", asked);
    expect((await ok("createWorkflow", asked)).id).toBe(made.id);
    await refused("IDEMPOTENCY_CONFLICT", "createWorkflow", { ...asked, name: "other" });
    const headers = { "idempotency-key": "r1" };
    const again = await ok("createWorkflow", { ...asked, requestId: "" }, { headers });
    expect(again.id).toBe(made.id);
    await refused("VALIDATION_ERROR", "createWorkflow", asked, {
      headers: { "idempotency-key": "r2" },
    });

    const run = { id: made.id, input: { a: 1, b: 2 }, wait: 0, requestId: "e1" };
    const first = await ok("executeWorkflow", run);
    const same = await ok("executeWorkflow", { ...run, input: { b: 2, a: 1 }, wait: 1 });
    expect(same).toMatchObject({ executionId: first.executionId, replayed: true });
    await refused("IDEMPOTENCY_CONFLICT", "executeWorkflow", { ...run, input: { a: 2 } });
    await ok("deleteWorkflow", { id: made.id });
    await refused("WORKFLOW_NOT_FOUND", "createWorkflow", asked);
  },

  async agents({ ok, refused }) {
    const made = await ok("registerAgent", {
      id: "worker-1",
      type: "gpu",
      capabilities: ["z", "a", "z"],
    });
    expect(made).toMatchObject({
      id: "worker-1",
      name: "worker-1",
      type: "gpu",
      capabilities: ["a", "z"],
      status: "active",
    });
    const renamed = await ok("registerAgent", { id: "worker-1", name: "Worker" });
    expect(renamed).toMatchObject({ name: "Worker", registeredAt: made.registeredAt });
    expect(renamed.capabilities).toBeUndefined();
    expect(await ok("getAgent", { id: "worker-1" })).toMatchObject({ name: "Worker" });
    expect(await ok("listAgents", { status: "active" })).toMatchObject({ total: 1 });
    expect((await ok("listAgents", { status: "inactive" })).agents).toBeUndefined();
    await refused("AGENT_NOT_FOUND", "getAgent", { id: "worker-1" }, { stranger: true });
    for (const id of ["", "a/b", "register", "x".repeat(129)]) {
      const details = await refused("VALIDATION_ERROR", "registerAgent", { id });
      expect(details.fields[0]).toEqual({ field: "id" });
    }
    await ok("deregisterAgent", { id: "worker-1" });
    const details = await refused("AGENT_NOT_FOUND", "deregisterAgent", { id: "worker-1" });
    expect(details.agentId).toBe("worker-1");
  },

  async "a call of an agent"({ ok, refused }) {
    await refused("AGENT_NOT_FOUND", "executeAgent", { id: "a" });
    await ok("registerAgent", { id: "a" });
    const waiting = ok("executeAgent", { id: "a", input: "text", wait: 20 });
    const [task] = (await ok("pollTasks", { wait: 5 }, { agent: "a" })).tasks;
    expect(task).toMatchObject({ input: "text", attempt: 1 });
    expect(task.workflowId).toBeUndefined();
    await ok("completeTask", { ...leaseOf(task), output: null }, { agent: "a" });
    const done = await waiting;
    expect(done).toMatchObject({ status: "completed", agentId: "a" });
    expect(await ok("getExecution", { id: done.executionId })).toMatchObject({ output: null });
  },

  async "an execution that times out while its caller waits"({ ok, refused }) {
    const { id } = await ok("createWorkflow", { name: "w" });
    await ok("registerAgent", { id: "a" });
    const timeout = "0.2s";
    const waiting = refused("TASK_TIMED_OUT", "executeWorkflow", { id, timeout, wait: 10 });
    const [task] = (await ok("pollTasks", { wait: 5 }, { agent: "a" })).tasks;
    const details = await waiting;
    expect(details).toEqual({ executionId: task.id, timeoutKind: "EXECUTION" });
    const ended = await ok("getExecution", { id: task.id });
    expect(ended).toMatchObject({ status: "timed_out", error: { message: "Task timed out" } });
    expect((await ok("getWorkflow", { id })).status).toBe("failed");
    await refused("LEASE_LOST", "completeTask", leaseOf(task), { agent: "a" });

    const asked = { id, timeout, requestId: "again" };
    await ok("executeWorkflow", { ...asked, wait: 0 });
    await ok("pollTasks", { wait: 5 }, { agent: "a" });
    await refused("TASK_TIMED_OUT", "executeWorkflow", { ...asked, wait: 10 });
    expect(await ok("executeWorkflow", asked)).toMatchObject({ status: "timed_out" });
  },

  async "a heartbeat"({ ok, refused }) {
    const { id } = await ok("createWorkflow", { name: "w" });
    await ok("registerAgent", { id: "a" });
    await ok("executeWorkflow", { id, wait: 0 });
    const [task] = (await ok("pollTasks", { wait: 5 }, { agent: "a" })).tasks;
    const beat = { ...leaseOf(task), progress: "half", lease: 20 };
    const { leaseLeft } = await ok("heartbeatTask", beat, { agent: "a" });
    expect(Number.parseFloat(leaseLeft)).toBeGreaterThan(19.8);
    const waited = await ok("heartbeatTask", { ...beat, wait: 0.3 }, { agent: "a" });
    expect(Number.parseFloat(waited.leaseLeft)).toBeLessThan(19.8);
    expect((await ok("getExecution", { id: task.id })).progress).toBe("half");
    const waiting = ok("heartbeatTask", { ...leaseOf(task), wait: 9 }, { agent: "a" });
    await ok("cancelExecution", { id: task.id });
    expect((await waiting).cancelRequested).toBe(true);
    await ok("releaseTask", leaseOf(task), { agent: "a" });
    await refused("LEASE_LOST", "heartbeatTask", leaseOf(task), { agent: "a" });
  },

  async "state that is pushed and pulled"({ ok, refused }) {
    const note = { type: "note", entityId: "n1", encryptedData: "c2VhbGVk", version: "1.0.0" };
    const first = await ok("pushState", note);
    expect(first).toMatchObject({ status: "created", record: { revision: 1, version: "1.0.0" } });
    expect(first.record.encryptedData).toBeUndefined();
    expect((await ok("pushState", note)).status).toBe("unchanged");
    const same = await refused("SYNC_CONFLICT", "pushState", {
      ...note,
      encryptedData: "b3RoZXI=",
    });
    expect(same).toMatchObject({ reason: "SAME_VERSION", current: { encryptedData: "c2VhbGVk" } });
    const stale = await refused("SYNC_CONFLICT", "pushState", { ...note, version: "0.9.9" });
    expect(stale.reason).toBe("STALE_VERSION");
    const next = { ...note, version: "1.10.0", encryptedData: "bmV3", expectedRevision: 7 };
    const mismatch = await refused("SYNC_CONFLICT", "pushState", next);
    expect(mismatch.reason).toBe("REVISION_MISMATCH");
    expect((await ok("pushState", { ...next, expectedRevision: 1 })).status).toBe("updated");

    const all = await ok("pullState", {});
    expect(all.records).toMatchObject([{ entityId: "n1", encryptedData: "bmV3", revision: 2 }]);
    expect(all.cursor).toBe(all.records[0].cursor);
    const gone = await ok("pushState", { ...note, version: "2", deleted: true, encryptedData: "" });
    expect(gone.status).toBe("deleted");
    expect((await ok("pullState", { since: 0 })).records).toBeUndefined();
    const since = await ok("pullState", { since: all.cursor });
    expect(since.records).toMatchObject([{ entityId: "n1", deleted: true, version: "2" }]);
    expect((await ok("pullState", { since: since.cursor })).records).toBeUndefined();
    await refused("SYNC_CURSOR_AHEAD", "pullState", { since: since.cursor + 1_000_000 });
    expect((await ok("pullState", {}, { stranger: true })).records).toBeUndefined();
  },

  async batches({ ok, refused }) {
    const record = (entityId: string, version = "1") => ({
      type: "note",
      entityId,
      encryptedData: `data of ${entityId}`,
      version,
    });
    const batch = await ok("pushState", { records: [record("a"), record("b")] });
    expect(batch.results.map(({ status }: { status: string }) => status)).toEqual([
      "created",
      "created",
    ]);
    const mixed = await ok("pushState", { records: [record("a", "0.1"), record("c")] });
    expect(mixed.results).toMatchObject([
      { status: "conflict", reason: "STALE_VERSION", current: { encryptedData: "data of a" } },
      { status: "created" },
    ]);
    const records = [record("d"), record("b", "0.1"), record("a", "0.1")];
    const none = await refused("SYNC_CONFLICT", "pushState", { records, atomic: true });
    expect(none.conflicts).toMatchObject([{ index: 1 }, { index: 2 }]);
    const pulled = await ok("pullState", { since: 0, limit: 2 });
    expect(pulled).toMatchObject({ hasMore: true });
    const rest = await ok("pullState", { since: pulled.cursor });
    const ids = [...pulled.records, ...rest.records].map(({ entityId }) => entityId);
    expect(ids).toEqual(["a", "b", "c"]);
    await refused("VALIDATION_ERROR", "pushState", { records: [record("x"), record("x", "2")] });
    await refused("VALIDATION_ERROR", "pushState", { ...record("x"), records: [record("y")] });
    const bad = await refused("VALIDATION_ERROR", "pushState", {
      records: [record("x"), { type: "note", entityId: "y", version: "newest" }],
    });
    expect(bad.fields.map(({ field }: { field: string }) => field)).toEqual([
      "records[1].version",
      "records[1].encryptedData",
    ]);
  },

  async "filters of a pull"({ ok, refused }) {
    const push = (type: string, entityId: string, agent: string) =>
      ok("pushState", { type, entityId, encryptedData: "x", version: "1" }, { agent });
    await push("note", "1", "phone");
    await push("todo", "2", "laptop");
    await push("note", "3", "laptop");
    const pull = async (request: Json) =>
      ((await ok("pullState", request, { agent: "phone" })).records ?? []).map(
        ({ entityId }: { entityId: string }) => entityId,
      );
    expect(await pull({ types: ["note"] })).toEqual(["1", "3"]);
    expect(await pull({ types: ["note", "todo"], entityIds: ["2", "3"] })).toEqual(["2", "3"]);
    expect(await pull({ since: 1, excludeOwn: true })).toEqual(["2", "3"]);
    expect(await pull({ since: 0, excludeOwn: true })).toEqual(["1", "2", "3"]);
    await refused("VALIDATION_ERROR", "pullState", { since: -1 });
    await refused("VALIDATION_ERROR", "pullState", { limit: 0 });
  },

  ...streamScenarios,
};

function leaseOf({ id, leaseToken }: { id: string; leaseToken: string }) {
  return { taskId: id, leaseToken };
}
