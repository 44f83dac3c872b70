import { expect, test } from "vitest";
import { limits } from "../../src/domain/limits.ts";
import type { ExecutionDraft } from "../../src/storage/port.ts";
import { executionDraft, makeAgent, makeWorkflow, resultOf } from "./drafts.ts";
import type { OpenedStore } from "./open-store.ts";
import { refusalOf, refusedFieldsOf } from "./refusal.ts";
import { complete, queue, take, takeIds } from "./work.ts";

/** The promises of createExecution. */
export function executionCreateSuite(open: () => Promise<OpenedStore>): void {
  queueingSuite(open);
  requestSuite(open);
  namingSuite(open);
  roomSuite(open);
}

function queueingSuite(open: () => Promise<OpenedStore>): void {
  test("queues an execution", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeWorkflow(store, "alice");
    const { result, touched } = await store.executions.createExecution("alice", executionDraft());
    const line = { owner: "alice", route: "c:", dueUs: clock.steadyUs() };
    expect(result).toStrictEqual({
      replayed: false,
      line,
      execution: {
        id: "e1",
        workflowId: "w1",
        agentId: "",
        status: "queued",
        output: "",
        error: null,
        attempt: 0,
        progress: "",
        keyReleases: [],
        createdUs: clock.wallUs(),
        startedUs: null,
        finishedUs: null,
      },
    });
    expect(touched).toMatchObject({ feeds: ["alice"], queued: [line], executions: [] });
  });

  test("throws WORKFLOW_NOT_FOUND", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeWorkflow(store, "alice");
    const run = (owner: string) => store.executions.createExecution(owner, executionDraft());
    expect(await refusalOf(run("bob"))).toBe("WORKFLOW_NOT_FOUND");
    await store.workflows.deleteWorkflow("alice", "w1");
    expect(await refusalOf(run("alice"))).toBe("WORKFLOW_NOT_FOUND");
  });
}

function requestSuite(open: () => Promise<OpenedStore>): void {
  const request = { id: "r1", fingerprint: "f1" };

  test("the same request key again answers the first one, replayed, as it is now", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "alice");
    await makeWorkflow(store, "alice");
    await queue(store, { request });
    const dueUs = clock.steadyUs();
    clock.advance(1);
    await complete(store, await take(store));
    const again = executionDraft({ id: "e2", request });
    const { result, touched } = await store.executions.createExecution("alice", again);
    expect(result).toMatchObject({ replayed: true, execution: { id: "e1", status: "completed" } });
    expect(result.line).toStrictEqual({ owner: "alice", route: "c:", dueUs });
    expect(touched).toMatchObject({ feeds: [], queued: [], executions: [] });
    expect(await takeIds(store)).toStrictEqual([]);
  });

  test("a request key counts for one owner, and for one workflow or one agent", async () => {
    await using opened = await open();
    const { store } = opened;
    const runs: [string, Partial<ExecutionDraft>][] = [
      ["alice", { id: "a", workflowId: "w1" }],
      ["alice", { id: "b", workflowId: "w2" }],
      ["alice", { id: "c", workflowId: null, agentId: "agent-1" }],
      ["alice", { id: "d", workflowId: null, agentId: "agent-2" }],
      ["bob", { id: "e", workflowId: null, agentId: "agent-1" }],
    ];
    await makeWorkflow(store, "alice", { id: "w1" });
    await makeWorkflow(store, "alice", { id: "w2" });
    await makeAgent(store, "alice", { id: "agent-1" });
    await makeAgent(store, "alice", { id: "agent-2" });
    await makeAgent(store, "bob", { id: "agent-1" });
    for (const [owner, run] of runs) {
      expect((await queue(store, { ...run, request }, owner)).id).toBe(run.id);
    }
  });

  test("throws IDEMPOTENCY_CONFLICT", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeWorkflow(store, "alice");
    await queue(store, { request });
    const other = executionDraft({ id: "e2", request: { id: "r1", fingerprint: "f2" } });
    const call = store.executions.createExecution("alice", other);
    expect(await refusalOf(call)).toBe("IDEMPOTENCY_CONFLICT");
  });

  test("a repeated request whose workflow was deleted since throws WORKFLOW_NOT_FOUND", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeWorkflow(store, "alice");
    await queue(store, { request });
    await store.workflows.deleteWorkflow("alice", "w1");
    expect(await refusalOf(queue(store, { id: "e2", request }))).toBe("WORKFLOW_NOT_FOUND");
  });

  test("a repeated request whose agent was deregistered since is answered", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice");
    const run = { workflowId: null, agentId: "agent-1", request };
    await queue(store, run);
    await store.agents.deregisterAgent("alice", "agent-1");
    expect((await queue(store, { ...run, id: "e2" })).id).toBe("e1");
  });
}

function namingSuite(open: () => Promise<OpenedStore>): void {
  test("goes to the agent that the call or the workflow names, whatever it can do", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice", { id: "agent-1", capabilities: ["gpu"] });
    await makeAgent(store, "alice", { id: "agent-2" });
    await makeWorkflow(store, "alice", { id: "w1", requiredCapabilities: ["gpu"] });
    await makeWorkflow(store, "alice", { id: "w2", agentId: "agent-2" });
    const called = await queue(store, { id: "called", agentId: "agent-2" });
    expect(called.agentId).toBe("agent-2");
    await queue(store, { id: "named", workflowId: "w2" });
    await queue(store, { id: "both", workflowId: "w2", agentId: "agent-2" });
    expect(await takeIds(store, { max: 9 })).toStrictEqual([]);
    const second = { owner: "alice", id: "agent-2" };
    const taken = await takeIds(store, { max: 9 }, second);
    expect(taken.toSorted()).toStrictEqual(["both", "called", "named"]);
  });

  test("throws VALIDATION_ERROR: another agent than the workflow's", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice", { id: "agent-1" });
    await makeAgent(store, "alice", { id: "agent-2" });
    await makeWorkflow(store, "alice", { agentId: "agent-1" });
    const call = queue(store, { agentId: "agent-2" });
    expect(await refusedFieldsOf(call)).toStrictEqual(["agent_id"]);
  });

  test("throws VALIDATION_ERROR: another owner's, allowed neither by the workflow nor the call", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "bob", { id: "shared", isPublic: true });
    await makeWorkflow(store, "alice", { id: "w1" });
    await makeWorkflow(store, "alice", { id: "w2", allowPublic: true });
    const run = { agentId: "shared" };
    expect(await refusedFieldsOf(queue(store, run))).toStrictEqual(["allow_public"]);
    await queue(store, { ...run, id: "e1", allowPublic: true });
    await queue(store, { ...run, id: "e2", workflowId: "w2" });
    const shared = { owner: "bob", id: "shared" };
    expect(await takeIds(store, { max: 9 }, shared)).toStrictEqual(["e1", "e2"]);
  });

  test("a call of an agent goes to the own one, else to the public one, and needs no consent", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "bob", { id: "agent-1", isPublic: true });
    const run = { workflowId: null, agentId: "agent-1" };
    const draft = (id: string) => executionDraft({ ...run, id });
    const first = await resultOf(store.executions.createExecution("alice", draft("e1")));
    expect(first.line).toMatchObject({ owner: "bob", route: "a:agent-1" });
    expect(first.execution).toMatchObject({ workflowId: "", agentId: "agent-1" });
    await makeAgent(store, "alice", { id: "agent-1" });
    const second = await resultOf(store.executions.createExecution("alice", draft("e2")));
    expect(second.line).toMatchObject({ owner: "alice", route: "a:agent-1" });
  });

  test("throws AGENT_NOT_FOUND", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice", { id: "gone" });
    await makeAgent(store, "bob", { id: "private" });
    await makeAgent(store, "bob", { id: "shared", isPublic: true });
    await makeWorkflow(store, "alice", { id: "w1" });
    await makeWorkflow(store, "alice", { id: "w2", agentId: "gone" });
    await makeWorkflow(store, "alice", { id: "w3", agentId: "shared", allowPublic: true });
    await store.agents.deregisterAgent("alice", "gone");
    await makeAgent(store, "bob", { id: "shared", isPublic: false });
    const runs: Partial<ExecutionDraft>[] = [
      { agentId: "unknown" },
      { agentId: "private", allowPublic: true },
      { agentId: "gone" },
      { workflowId: "w2" },
      { workflowId: "w2", agentId: "gone" },
      { workflowId: "w3" },
      { workflowId: null, agentId: "private" },
    ];
    for (const run of runs) expect(await refusalOf(queue(store, run))).toBe("AGENT_NOT_FOUND");
  });
}

function roomSuite(open: () => Promise<OpenedStore>): void {
  test("throws QUEUE_FULL: 10,000 queued executions", { timeout: 120_000 }, async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice");
    await makeWorkflow(store, "alice");
    await makeWorkflow(store, "bob", { id: "w2" });
    const ids = Array.from({ length: limits.queuedExecutionsMax }, (_, i) => `e${i}`);
    await Promise.all(ids.map((id) => queue(store, { id })));
    expect(await refusalOf(queue(store, { id: "late" }))).toBe("QUEUE_FULL");
    expect((await queue(store, { id: "other", workflowId: "w2" }, "bob")).status).toBe("queued");
    await take(store);
    expect((await queue(store, { id: "late" })).status).toBe("queued");
  });

  test("throws QUEUE_FULL: 256 sets of capabilities", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice", { capabilities: ["c0"] });
    const count = limits.queuedRoutesMax;
    const names = Array.from({ length: count + 1 }, (_, i) => `c${i}`);
    await Promise.all(
      names.map((name) => makeWorkflow(store, "alice", { id: name, requiredCapabilities: [name] })),
    );
    await Promise.all(names.slice(0, count).map((id) => queue(store, { id, workflowId: id })));
    const oneMore = () => queue(store, { id: "late", workflowId: `c${count}` });
    expect(await refusalOf(oneMore())).toBe("QUEUE_FULL");
    await queue(store, { id: "known set", workflowId: "c1" });
    await queue(store, { id: "named", workflowId: null, agentId: "agent-1" });
    expect(await takeIds(store, { max: 2 })).toHaveLength(2);
    expect((await oneMore()).status).toBe("queued");
  });
}
