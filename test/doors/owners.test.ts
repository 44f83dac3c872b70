import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Body, newOwner, type RestCaller, rpcCaller } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** Everything that an owner can have, and a stranger who wants to know. */
async function stage() {
  const [me, stranger] = await Promise.all([newOwner(server), newOwner(server)]);
  await me.ok("POST", "/agents/register", { id: "worker" });
  await stranger.ok("POST", "/agents/register", { id: "worker" });
  const workflow = await me.ok("POST", "/workflows", { name: "w", encryptedData: "mine" });
  const run = await me.ok("POST", `/workflows/${workflow.id}/execute`, { wait: 0 });
  const { tasks } = await me.as("worker").ok("POST", "/tasks/poll", { wait: 5 });
  await me.ok("POST", "/sync/push", {
    ...{ type: "note", entityId: "n1", encryptedData: "mine", version: "1" },
  });
  return { me, stranger, workflow, run, task: tasks[0] };
}

/** What a caller sees of a call, without the id that he sent himself. */
async function seen(caller: RestCaller, at: string, body: Body, id: string): Promise<string> {
  const [verb = "", path = ""] = at.split(" ");
  const answer = await caller.call(verb, path.replace("ID", id), body && { body });
  return `${answer.status} ${answer.text.replaceAll(id, "ID")}`;
}

describe("what belongs to another owner does not exist", () => {
  test("he cannot tell it from what nobody has", async () => {
    const { stranger, workflow, run, task } = await stage();
    const report = { leaseToken: task.leaseToken };
    const calls: [string, Body, string][] = [
      ["GET /workflows/ID", undefined, workflow.id],
      ["PATCH /workflows/ID", { name: "n" }, workflow.id],
      ["DELETE /workflows/ID", undefined, workflow.id],
      ["POST /workflows/ID/execute", { wait: 0 }, workflow.id],
      ["GET /workflows/ID/executions", undefined, workflow.id],
      ["GET /executions/ID", undefined, run.executionId],
      ["GET /executions/ID?wait=0.1", undefined, run.executionId],
      ["POST /executions/ID/cancel", undefined, run.executionId],
      ["POST /tasks/ID/heartbeat", report, task.id],
      ["POST /tasks/ID/complete", report, task.id],
      ["POST /tasks/ID/fail", report, task.id],
      ["POST /tasks/ID/release", report, task.id],
    ];
    for (const [at, body, id] of calls) {
      const unknown = `${id.slice(0, 3)}${"0".repeat(26)}`;
      const told = await seen(stranger.as("worker"), at, body, id);
      expect(told).toBe(await seen(stranger.as("worker"), at, body, unknown));
      expect([at, told.slice(0, 3)]).toEqual([at, at.endsWith("heartbeat") ? "409" : "404"]);
    }
  });

  test("nor an agent, to look at, to call, to poll as or to remove", async () => {
    const { stranger, task } = await stage();
    const me = await newOwner(server);
    await me.ok("POST", "/agents/register", { id: "private" });
    const report = { leaseToken: task.leaseToken };
    const calls: [string, Body, string][] = [
      ["GET /agents/ID", undefined, "laptop"],
      ["POST /agents/ID/execute", { wait: 0 }, "laptop"],
      ["DELETE /agents/ID", undefined, "laptop"],
      ["POST /tasks/poll", { wait: 0 }, "ID"],
      [`POST /tasks/${task.id}/complete`, report, "ID"],
    ];
    for (const [at, body, as] of calls) {
      const tell = (id: string) => seen(stranger.as(as.replace("ID", id)), at, body, id);
      const told = await tell("private");
      expect(told).toBe(await tell("nobody"));
      expect([at, told.slice(0, 3)]).toEqual([at, "404"]);
    }
    expect(await me.ok("GET", "/agents/private")).toMatchObject({ status: "active" });
  });

  test("he sees nothing of it in lists, polls, pulls and streams", async () => {
    const { me, stranger, workflow } = await stage();
    expect(await stranger.ok("GET", "/workflows")).toMatchObject({ workflows: [], total: 0 });
    expect(await stranger.ok("GET", "/agents")).toMatchObject({ total: 1 });
    await me.ok("POST", `/workflows/${workflow.id}/execute`, { wait: 0 });
    const poll = await stranger.as("worker").ok("POST", "/tasks/poll", { wait: 0.1 });
    expect(poll.tasks).toEqual([]);
    const pull = "/sync/pull?kinds=state_upserted,workflow,execution,agent";
    const { records, changes } = await stranger.ok("GET", pull);
    expect([records, changes.map(({ kind }: Body) => kind)]).toEqual([[], ["agent"]]);
    const head = (await stranger.ok("GET", "/sync/pull")).cursor;
    const stream = rpcCaller(server, stranger).sync.subscribe({})[Symbol.asyncIterator]();
    await stream.next();
    await stream.next();
    await me.ok("DELETE", `/workflows/${workflow.id}`);
    const push = { type: "note", entityId: "n1", encryptedData: "his", version: "0.1" };
    // The same entity under a lower version: another owner's is no conflict.
    expect((await stranger.ok("POST", "/sync/push", push)).status).toBe("created");
    expect((await stream.next()).value?.record).toMatchObject({ encryptedData: "his" });
    await stream.return?.();
    expect(head).toBeLessThan((await me.ok("GET", "/sync/pull")).cursor);
  });

  test("what he did to it changed nothing", async () => {
    const { me, stranger, workflow, run, task } = await stage();
    const paths = [`/workflows/${workflow.id}`, `/executions/${run.executionId}`];
    const before = await Promise.all(paths.map((path) => me.ok("GET", path)));
    await stranger.call("DELETE", `/workflows/${workflow.id}`);
    await stranger.call("POST", `/executions/${run.executionId}/cancel`);
    const report = { body: { leaseToken: task.leaseToken, output: "stolen" } };
    await stranger.as("worker").call("POST", `/tasks/${task.id}/complete`, report);
    await stranger.call("DELETE", "/agents/worker");
    expect(await Promise.all(paths.map((path) => me.ok("GET", path)))).toEqual(before);
    await me.as("worker").ok("POST", `/tasks/${task.id}/complete`, {
      ...{ leaseToken: task.leaseToken, output: "mine" },
    });
    expect(await me.ok("GET", paths[1] ?? "")).toMatchObject({ output: "mine" });
    expect(await me.ok("GET", "/agents/worker")).toMatchObject({ id: "worker" });
  });

  test("one request id of two owners makes two things", async () => {
    const { me, stranger } = await stage();
    const draft = { name: "w", requestId: "same" };
    const first = await me.ok("POST", "/workflows", draft);
    expect((await stranger.ok("POST", "/workflows", draft)).id).not.toBe(first.id);
    const push = { type: "t", entityId: "e", version: "1", encryptedData: "x", mutationId: "m" };
    expect((await me.ok("POST", "/sync/push", push)).status).toBe("created");
    expect((await stranger.ok("POST", "/sync/push", push)).status).toBe("created");
  });

  test("another owner's page token opens nothing", async () => {
    const { me, stranger } = await stage();
    for (const name of ["1", "2"]) await me.ok("POST", "/workflows", { name });
    const { nextPageToken } = await me.ok("GET", "/workflows?limit=1");
    const page = await stranger.call("GET", `/workflows?limit=1&pageToken=${nextPageToken}`);
    expect(page.text).not.toContain("wf_");
  });
});

describe("public agents", () => {
  /** A public agent of another owner, under an id that no other test has. */
  async function publicAgent() {
    const [me, host] = await Promise.all([newOwner(server), newOwner(server)]);
    const id = randomUUID();
    await host.ok("POST", "/agents/register", { id, isPublic: true, type: "gpu" });
    return { me, host, id };
  }

  test("are seen after own ones, and an own id hides them", async () => {
    const { me, id } = await publicAgent();
    expect(await me.ok("GET", `/agents/${id}`)).toMatchObject({ type: "gpu", isPublic: true });
    await me.ok("POST", "/agents/register", { id: "mine" });
    const { agents } = await me.ok("GET", "/agents?limit=200");
    expect(agents[0]).toMatchObject({ id: "mine" });
    expect(agents.map((agent: Body) => agent.id)).toContain(id);
    await me.ok("POST", "/agents/register", { id, type: "own" });
    expect(await me.ok("GET", `/agents/${id}`)).toMatchObject({ type: "own", isPublic: false });
    const again = await me.ok("GET", "/agents?limit=200");
    expect(again.agents.filter((agent: Body) => agent.id === id)).toMatchObject([{ type: "own" }]);
  });

  test("have an id that is theirs among public ones", async () => {
    const { me, host, id } = await publicAgent();
    const error = await me.refused("AGENT_ID_TAKEN", "POST", "/agents/register", {
      ...{ id, isPublic: true },
    });
    expect(error.details).toEqual({ agentId: id });
    await host.ok("POST", "/agents/register", { id });
    await me.ok("POST", "/agents/register", { id, isPublic: true });
    await host.refused("AGENT_ID_TAKEN", "POST", "/agents/register", { id, isPublic: true });
  });

  test("an own id that was deregistered never falls through to a public one", async () => {
    const { me, id } = await publicAgent();
    await me.ok("POST", "/agents/register", { id });
    await me.ok("DELETE", `/agents/${id}`);
    await me.refused("AGENT_NOT_FOUND", "GET", `/agents/${id}`);
    await me.refused("AGENT_NOT_FOUND", "POST", `/agents/${id}/execute`, { wait: 0 });
    const named = { name: "w", agentId: id, allowPublic: true };
    await me.refused("AGENT_NOT_FOUND", "POST", "/workflows", named);
  });

  test("run another's workflow when named with allowPublic, and are handed payload and key", async () => {
    const { me, host, id } = await publicAgent();
    const draft = { name: "w", encryptedData: "payload", encryptionKey: "the key" };
    await me.refused("VALIDATION_ERROR", "POST", "/workflows", { ...draft, agentId: id });
    const workflow = await me.ok("POST", "/workflows", draft);
    const execute = `/workflows/${workflow.id}/execute`;
    await me.refused("VALIDATION_ERROR", "POST", execute, { agentId: id });
    const run = await me.ok("POST", execute, {
      ...{ agentId: id, allowPublic: true, wait: 0, input: "for you" },
    });
    const { tasks } = await host.as(id).ok("POST", "/tasks/poll", { wait: 5 });
    expect(tasks).toMatchObject([
      {
        ...{ id: run.executionId, workflowId: workflow.id, name: "w", input: "for you" },
        ...{ encryptedData: "payload", encryptionKey: "the key" },
      },
    ]);
    // Its owner has the task, not the execution nor the workflow.
    const path = `/executions/${run.executionId}`;
    await host.as(id).refused("EXECUTION_NOT_FOUND", "GET", path);
    await host.as(id).refused("EXECUTION_NOT_FOUND", "POST", `${path}/cancel`);
    await host.refused("WORKFLOW_NOT_FOUND", "GET", `/workflows/${workflow.id}`);
    const [task] = tasks;
    await host.as(id).ok("POST", `/tasks/${task.id}/complete`, {
      ...{ leaseToken: task.leaseToken, output: "done" },
    });
    const done = await me.ok("GET", path);
    expect(done).toMatchObject({ status: "completed", output: "done", agentId: id });
    expect(done.keyReleases).toMatchObject([{ agentId: id, attempt: 1 }]);
    expect(await host.ok("GET", "/sync/pull?kinds=execution,workflow")).toMatchObject({
      changes: [],
    });
  });

  test("are chosen by no capability, and take no task that names none", async () => {
    const { me, host, id } = await publicAgent();
    await host.ok("POST", "/agents/register", { id, isPublic: true, capabilities: ["text"] });
    const draft = { name: "w", requiredCapabilities: ["text"], allowPublic: true };
    const workflow = await me.ok("POST", "/workflows", draft);
    await me.ok("POST", `/workflows/${workflow.id}/execute`, { wait: 0 });
    expect((await host.as(id).ok("POST", "/tasks/poll", { wait: 0.2 })).tasks).toEqual([]);
  });

  test("can be called by anyone, and the caller's owner alone sees the result", async () => {
    const { me, host, id } = await publicAgent();
    const run = await me.ok("POST", `/agents/${id}/execute`, { input: 1, wait: 0 });
    const { tasks } = await host.as(id).ok("POST", "/tasks/poll", { wait: 5 });
    expect(tasks).toMatchObject([{ id: run.executionId, input: 1 }]);
    // The same id of the caller's own owner is another agent.
    await me.as(id).refused("AGENT_NOT_FOUND", "POST", "/tasks/poll", { wait: 0 });
    await me.ok("POST", "/agents/register", { id });
    await me.as(id).refused("TASK_NOT_FOUND", "POST", `/tasks/${tasks[0].id}/complete`, {
      leaseToken: tasks[0].leaseToken,
    });
  });
});
