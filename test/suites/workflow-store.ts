import { describe, expect, test } from "vitest";
import type { Poll } from "../../src/storage/port.ts";
import { executionDraft, makeAgent, makeWorkflow, workflowDraft } from "./drafts.ts";
import { type OpenedStore, second } from "./open-store.ts";
import { refusalOf, refusedFieldsOf } from "./refusal.ts";
import { workflowChangesSuite } from "./workflow-changes.ts";

const poll: Poll = { pollId: "", max: 1, leaseUs: 30 * second, isGone: () => false };
/** The promises of WorkflowStore, for any store. */
export function workflowStoreSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: workflows`, () => {
    describe("createWorkflow", () => createSuite(open));
    describe("getWorkflow and listWorkflows", () => readSuite(open));
    workflowChangesSuite(open);
  });
}

function createSuite(open: () => Promise<OpenedStore>): void {
  test("makes a draft", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const draft = workflowDraft({ requiredCapabilities: ["gpu", "pdf"], allowPublic: true });
    const { result, touched } = await store.workflows.createWorkflow("alice", draft);
    expect(result).toStrictEqual({
      replayed: false,
      workflow: {
        id: "w1",
        name: "nightly report",
        description: "sums up the day",
        status: "draft",
        encryptedData: "c2VjcmV0",
        agentId: "",
        allowPublic: true,
        requiredCapabilities: ["gpu", "pdf"],
        createdUs: clock.wallUs(),
        updatedUs: clock.wallUs(),
      },
    });
    expect(touched.feeds).toStrictEqual(["alice"]);
    expect(await store.records.head("alice")).toBe(clock.wallUs());
  });

  test("the same request key again answers the workflow made first, in its present state", async () => {
    await using opened = await open();
    const { workflows } = opened.store;
    const request = { id: "r1", fingerprint: "f1" };
    await workflows.createWorkflow("alice", workflowDraft({ request }));
    await workflows.updateWorkflow("alice", "w1", { name: "renamed" });
    const { result, touched } = await workflows.createWorkflow(
      "alice",
      workflowDraft({ id: "w2", request }),
    );
    expect(result).toMatchObject({ replayed: true, workflow: { id: "w1", name: "renamed" } });
    expect(touched.feeds).toStrictEqual([]);
    expect((await workflows.listWorkflows("alice", { limit: 10 })).total).toBe(1);
  });

  test("a request key counts for its owner alone", async () => {
    await using opened = await open();
    const request = { id: "r1", fingerprint: "f1" };
    await makeWorkflow(opened.store, "alice", { request });
    const made = await makeWorkflow(opened.store, "bob", { id: "w2", request });
    expect(made.id).toBe("w2");
  });

  test("throws IDEMPOTENCY_CONFLICT for a key with other content", async () => {
    await using opened = await open();
    const { workflows } = opened.store;
    await makeWorkflow(opened.store, "alice", { request: { id: "r1", fingerprint: "f1" } });
    const other = workflowDraft({ id: "w2", request: { id: "r1", fingerprint: "f2" } });
    expect(await refusalOf(workflows.createWorkflow("alice", other))).toBe("IDEMPOTENCY_CONFLICT");
  });

  test("throws WORKFLOW_NOT_FOUND when the workflow made first was deleted", async () => {
    await using opened = await open();
    const { workflows } = opened.store;
    const request = { id: "r1", fingerprint: "f1" };
    await makeWorkflow(opened.store, "alice", { request });
    await workflows.deleteWorkflow("alice", "w1");
    const again = workflows.createWorkflow("alice", workflowDraft({ id: "w2", request }));
    expect(await refusalOf(again)).toBe("WORKFLOW_NOT_FOUND");
  });

  test("throws AGENT_NOT_FOUND for a named agent that does not exist", async () => {
    await using opened = await open();
    const { store } = opened;
    const named = workflowDraft({ agentId: "agent-1", allowPublic: true });
    expect(await refusalOf(store.workflows.createWorkflow("alice", named))).toBe("AGENT_NOT_FOUND");
    await makeAgent(store, "bob", { isPublic: false });
    expect(await refusalOf(store.workflows.createWorkflow("alice", named))).toBe("AGENT_NOT_FOUND");
    expect(await refusalOf(store.workflows.getWorkflow("alice", "w1"))).toBe("WORKFLOW_NOT_FOUND");
  });

  test("an id whose own agent was deregistered means no public one", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice");
    await store.agents.deregisterAgent("alice", "agent-1");
    await makeAgent(store, "bob", { isPublic: true });
    const named = workflowDraft({ agentId: "agent-1", allowPublic: true });
    expect(await refusalOf(store.workflows.createWorkflow("alice", named))).toBe("AGENT_NOT_FOUND");
  });

  test("throws VALIDATION_ERROR for another owner's agent without allowPublic", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "bob", { isPublic: true });
    const named = workflowDraft({ agentId: "agent-1" });
    const refused = store.workflows.createWorkflow("alice", named);
    expect(await refusalOf(refused)).toBe("VALIDATION_ERROR");
    expect(await refusedFieldsOf(refused)).toStrictEqual(["allow_public"]);
    const allowed = await makeWorkflow(store, "alice", { agentId: "agent-1", allowPublic: true });
    expect(allowed.agentId).toBe("agent-1");
  });

  test("an own agent is meant before a public one, and needs no allowPublic", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "bob", { isPublic: true });
    await makeAgent(store, "alice");
    const made = await makeWorkflow(store, "alice", { agentId: "agent-1" });
    expect(made.agentId).toBe("agent-1");
  });
}

function readSuite(open: () => Promise<OpenedStore>): void {
  test("the workflow with its payload, and never its key", async () => {
    await using opened = await open();
    await makeWorkflow(opened.store, "alice");
    const found = await opened.store.workflows.getWorkflow("alice", "w1");
    expect(found.encryptedData).toBe("c2VjcmV0");
    expect(JSON.stringify(found)).not.toContain("the key");
  });

  test("another owner's row does not exist", async () => {
    await using opened = await open();
    const { workflows } = opened.store;
    await makeWorkflow(opened.store, "alice");
    const attempts = [
      workflows.getWorkflow("bob", "w1"),
      workflows.updateWorkflow("bob", "w1", { name: "mine" }),
      workflows.deleteWorkflow("bob", "w1"),
      workflows.getWorkflow("alice", "w2"),
    ];
    const reasons = await Promise.all(attempts.map(refusalOf));
    expect(new Set(reasons)).toStrictEqual(new Set(["WORKFLOW_NOT_FOUND"]));
    expect(await workflows.listWorkflows("bob", { limit: 10 })).toStrictEqual({
      items: [],
      total: 0,
      hasMore: false,
    });
    expect((await workflows.getWorkflow("alice", "w1")).name).toBe("nightly report");
  });

  test("a page without payloads, newest first", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    for (const id of ["w2", "w1", "w3"]) {
      await makeWorkflow(store, "alice", { id });
      clock.advance(1);
    }
    const page = await store.workflows.listWorkflows("alice", { limit: 10 });
    expect(page.items.map(({ id }) => id)).toStrictEqual(["w3", "w1", "w2"]);
    expect(page.items.map(({ encryptedData }) => encryptedData)).toStrictEqual(["", "", ""]);
    expect(page).toMatchObject({ total: 3, hasMore: false });
  });

  test("pages go on after the last item, also of those made in one microsecond", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    for (const id of ["w1", "w2", "w3", "w4", "w5"]) {
      if (id === "w4") clock.advance(1);
      await makeWorkflow(store, "alice", { id });
    }
    const seen: string[] = [];
    let page = await store.workflows.listWorkflows("alice", { limit: 2 });
    for (let reads = 1; reads <= 3; reads++) {
      seen.push(...page.items.map(({ id }) => id));
      expect(page).toMatchObject({ total: 5, hasMore: reads < 3 });
      const last = page.items.at(-1);
      if (last === undefined || !page.hasMore) break;
      page = await store.workflows.listWorkflows("alice", { limit: 2, after: last });
    }
    expect(seen).toStrictEqual(["w5", "w4", "w3", "w2", "w1"]);
  });

  test("the total counts how many match on all pages, of the status asked for", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice");
    for (const id of ["w1", "w2", "w3"]) await makeWorkflow(store, "alice", { id });
    await store.executions.createExecution("alice", executionDraft({ workflowId: "w2" }));
    await store.tasks.grantTasks({ owner: "alice", id: "agent-1" }, poll);
    const drafts = await store.workflows.listWorkflows("alice", { limit: 1, status: "draft" });
    expect(drafts).toMatchObject({ items: [{ id: "w3" }], total: 2, hasMore: true });
    const running = await store.workflows.listWorkflows("alice", { limit: 1, status: "running" });
    expect(running).toMatchObject({
      items: [{ id: "w2", status: "running" }],
      total: 1,
      hasMore: false,
    });
    expect((await store.workflows.listWorkflows("alice", { limit: 1 })).total).toBe(3);
  });
}
