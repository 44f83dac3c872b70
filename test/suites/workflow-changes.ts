import { describe, expect, test } from "vitest";
import type { FeedQuery, Poll } from "../../src/storage/port.ts";
import { executionDraft, makeAgent, makeWorkflow, resultOf } from "./drafts.ts";
import { minute, type OpenedStore, second } from "./open-store.ts";
import { refusalOf, refusedFieldsOf } from "./refusal.ts";

const poll: Poll = { pollId: "", max: 1, leaseUs: 30 * second, isGone: () => false };
const lifecycle: FeedQuery = {
  after: 0,
  limit: 100,
  bytesMax: 1_000_000,
  withRecords: true,
  withTombstones: true,
  kinds: new Set(["workflow", "execution", "agent"] as const),
  types: [],
  entityIds: [],
};

/** What changes and deletes workflows: promises of WorkflowStore, for any store. */
export function workflowChangesSuite(open: () => Promise<OpenedStore>): void {
  describe("updateWorkflow", () => updateSuite(open));
  describe("deleteWorkflow", () => deleteSuite(open));
}

function updateSuite(open: () => Promise<OpenedStore>): void {
  test("changes what is given", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const made = await makeWorkflow(store, "alice", { requiredCapabilities: ["gpu"] });
    clock.advance(minute);
    const renamed = await store.workflows.updateWorkflow("alice", "w1", { name: "renamed" });
    expect(renamed.result).toStrictEqual({ ...made, name: "renamed", updatedUs: clock.wallUs() });
    expect(renamed.touched.feeds).toStrictEqual(["alice"]);
    expect(await store.records.head("alice")).toBe(clock.wallUs());
    const rest = {
      description: "",
      encryptedData: "bmV3",
      allowPublic: true,
      requiredCapabilities: ["pdf"],
    };
    const changed = await resultOf(store.workflows.updateWorkflow("alice", "w1", rest));
    expect(changed).toStrictEqual({ ...renamed.result, ...rest });
    expect(await store.workflows.getWorkflow("alice", "w1")).toStrictEqual(changed);
  });

  test("the new key is what a granted task holds; an empty one takes it away", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice");
    for (const id of ["w1", "w2"]) await makeWorkflow(store, "alice", { id });
    await store.workflows.updateWorkflow("alice", "w1", { encryptionKey: "another key" });
    await store.workflows.updateWorkflow("alice", "w2", { encryptionKey: "" });
    for (const id of ["w1", "w2"]) {
      await store.executions.createExecution("alice", executionDraft({ id, workflowId: id }));
    }
    const agent = { owner: "alice", id: "agent-1" };
    const granted = await resultOf(store.tasks.grantTasks(agent, { ...poll, max: 2 }));
    const keys = granted.tasks.map(({ workflowId, encryptionKey }) => [workflowId, encryptionKey]);
    expect(new Map(keys as [string, string][])).toStrictEqual(
      new Map([
        ["w1", "another key"],
        ["w2", ""],
      ]),
    );
  });

  test("throws WORKFLOW_ACTIVE while an execution has not ended", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeWorkflow(store, "alice");
    await store.executions.createExecution("alice", executionDraft());
    const update = () => store.workflows.updateWorkflow("alice", "w1", { name: "renamed" });
    expect(await refusalOf(update())).toBe("WORKFLOW_ACTIVE");
    await store.executions.cancelExecution("alice", "e1");
    expect((await resultOf(update())).name).toBe("renamed");
  });

  test("throws AGENT_NOT_FOUND and VALIDATION_ERROR as createWorkflow, and changes nothing", async () => {
    await using opened = await open();
    const { store } = opened;
    const { workflows } = store;
    const made = await makeWorkflow(store, "alice");
    const name = "renamed";
    const unknown = workflows.updateWorkflow("alice", "w1", { name, agentId: "agent-1" });
    expect(await refusalOf(unknown)).toBe("AGENT_NOT_FOUND");
    await makeAgent(store, "bob", { isPublic: true });
    const foreign = workflows.updateWorkflow("alice", "w1", { name, agentId: "agent-1" });
    expect(await refusedFieldsOf(foreign)).toStrictEqual(["allow_public"]);
    expect(await workflows.getWorkflow("alice", "w1")).toStrictEqual(made);
    const allowed = { agentId: "agent-1", allowPublic: true };
    expect(await resultOf(workflows.updateWorkflow("alice", "w1", allowed))).toMatchObject(allowed);
    const withdrawn = workflows.updateWorkflow("alice", "w1", { allowPublic: false });
    expect(await refusedFieldsOf(withdrawn)).toStrictEqual(["allow_public"]);
    const unnamed = { agentId: "", allowPublic: false };
    expect(await resultOf(workflows.updateWorkflow("alice", "w1", unnamed))).toMatchObject(unnamed);
  });
}

function deleteSuite(open: () => Promise<OpenedStore>): void {
  test("deletes the workflow; WORKFLOW_NOT_FOUND, also the second time", async () => {
    await using opened = await open();
    const { store } = opened;
    const { workflows } = store;
    await makeWorkflow(store, "alice");
    const { touched } = await workflows.deleteWorkflow("alice", "w1");
    expect(touched.feeds).toStrictEqual(["alice"]);
    const attempts = [
      workflows.getWorkflow("alice", "w1"),
      workflows.updateWorkflow("alice", "w1", { name: "renamed" }),
      workflows.deleteWorkflow("alice", "w1"),
      store.executions.createExecution("alice", executionDraft()),
      store.executions.listExecutions("alice", { workflowId: "w1", limit: 1 }),
    ];
    const reasons = await Promise.all(attempts.map(refusalOf));
    expect(new Set(reasons)).toStrictEqual(new Set(["WORKFLOW_NOT_FOUND"]));
    expect(await workflows.listWorkflows("alice", { limit: 10 })).toMatchObject({
      items: [],
      total: 0,
    });
  });

  test("ends its active executions as cancelled", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "alice");
    await makeWorkflow(store, "alice");
    await store.executions.createExecution("alice", executionDraft({ id: "held" }));
    await store.tasks.grantTasks({ owner: "alice", id: "agent-1" }, poll);
    await store.executions.createExecution("alice", executionDraft({ id: "waiting" }));
    const { touched } = await store.workflows.deleteWorkflow("alice", "w1");
    expect(new Set(touched.executions)).toStrictEqual(new Set(["held", "waiting"]));
    for (const id of ["held", "waiting"]) {
      expect(await store.executions.getExecution("alice", id)).toMatchObject({
        status: "cancelled",
        finishedUs: clock.wallUs(),
      });
    }
    expect((await store.workflows.listWorkflows("alice", { limit: 1 })).total).toBe(0);
  });

  test("the feed tells that it was deleted, and a sweep takes it away after 30 days", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const request = { id: "r1", fingerprint: "f1" };
    await makeWorkflow(store, "alice", { request });
    await store.workflows.deleteWorkflow("alice", "w1");
    clock.advance(30 * 24 * 60 * minute);
    expect(await store.prune(10)).toStrictEqual({ hasMore: false });
    const feed = await store.records.readFeed("alice", lifecycle);
    expect(feed.items).toMatchObject([{ change: { kind: "workflow", id: "w1", deleted: true } }]);
    clock.advance(1);
    await store.prune(10);
    expect((await store.records.readFeed("alice", lifecycle)).items).toStrictEqual([]);
    expect((await makeWorkflow(store, "alice", { id: "w2", request })).id).toBe("w2");
  });
}
