import { describe, expect, test } from "vitest";
import { executionDraft, makeWorkflow } from "./drafts.ts";
import { executionCreateSuite } from "./execution-create.ts";
import { minute, type OpenedStore, second } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";
import {
  beat,
  complete,
  fail,
  graceUs,
  grants,
  leaseUs,
  openWithWork,
  queue,
  see,
  sweep,
  take,
} from "./work.ts";

/** The promises of ExecutionStore, for any store. */
export function executionStoreSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: executions`, () => {
    describe("createExecution", () => executionCreateSuite(open));
    describe("getExecution and getLine", () => readSuite(open));
    describe("listExecutions", () => listSuite(open));
    describe("cancelExecution", () => cancelSuite(open));
    describe("the status of a workflow", () => workflowStatusSuite(open));
  });
}

function readSuite(open: () => Promise<OpenedStore>): void {
  test("the execution with output, progress and key releases", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    const { createdUs } = await queue(store);
    clock.advance(second);
    const startedUs = clock.wallUs();
    const first = await take(store);
    await beat(store, first, { progress: "half" });
    await fail(store, first, { retryAfterUs: 0 });
    clock.advance(second);
    await complete(store, await take(store), '{"pages":3}');
    expect(await see(store)).toStrictEqual({
      id: "e1",
      workflowId: "w1",
      agentId: "agent-1",
      status: "completed",
      output: '{"pages":3}',
      error: null,
      attempt: 2,
      progress: "half",
      keyReleases: [
        { agentId: "agent-1", attempt: 1, timeUs: startedUs },
        { agentId: "agent-1", attempt: 2, timeUs: startedUs + second },
      ],
      createdUs,
      startedUs,
      finishedUs: startedUs + second,
    });
  });

  test("without a key there is no release", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await makeWorkflow(store, "alice", { id: "w2", encryptionKey: "" });
    await queue(store, { workflowId: "w2" });
    await take(store);
    expect((await see(store)).keyReleases).toStrictEqual([]);
  });

  test("throws EXECUTION_NOT_FOUND", async () => {
    await using opened = await openWithWork(open);
    const { executions } = opened.store;
    await queue(opened.store);
    const calls = [
      executions.getExecution("alice", "e2"),
      executions.getExecution("bob", "e1"),
      executions.getLine("bob", "e1"),
      executions.cancelExecution("bob", "e1"),
    ];
    for (const call of calls) expect(await refusalOf(call)).toBe("EXECUTION_NOT_FOUND");
  });

  test("an execution of a deleted workflow stays readable", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    await complete(store, await take(store));
    await store.workflows.deleteWorkflow("alice", "w1");
    expect(await see(store)).toMatchObject({ status: "completed", output: '"done"' });
  });

  test("where an execution waits; null once it has ended", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await makeWorkflow(store, "alice", { id: "w2", requiredCapabilities: ["gpu", "pdf"] });
    await queue(store, { workflowId: "w2" });
    const line = () => store.executions.getLine("alice", "e1");
    expect(await line()).toStrictEqual({
      owner: "alice",
      route: "c:gpu,pdf",
      dueUs: clock.steadyUs(),
    });
    await store.executions.cancelExecution("alice", "e1");
    expect(await line()).toBeNull();
  });
}

function listSuite(open: () => Promise<OpenedStore>): void {
  test("a page without output, progress and key releases, newest first", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await makeWorkflow(store, "alice", { id: "w2" });
    await queue(store, { id: "other", workflowId: "w2" });
    await store.executions.cancelExecution("alice", "other");
    for (const id of ["e1", "e2", "e3"]) {
      await queue(store, { id });
      if (id !== "e1") clock.advance(second);
    }
    const task = await take(store);
    await beat(store, task, { progress: "half" });
    await complete(store, task);
    const first = await store.executions.listExecutions("alice", { workflowId: "w1", limit: 2 });
    expect(first).toMatchObject({ total: 3, hasMore: true });
    expect(first.items.map(({ id }) => id)).toStrictEqual(["e3", "e2"]);
    const [, last] = first.items;
    const rest = await store.executions.listExecutions("alice", {
      workflowId: "w1",
      limit: 2,
      after: { createdUs: last?.createdUs ?? 0, id: last?.id ?? "" },
    });
    expect(rest).toMatchObject({ total: 3, hasMore: false });
    expect(rest.items).toStrictEqual([
      { ...(await see(store)), output: "", progress: "", keyReleases: [] },
    ]);
  });

  test("shows why an execution failed", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    await fail(store, await take(store), { retryable: false });
    const query = { workflowId: "w1", limit: 1 };
    const { items } = await store.executions.listExecutions("alice", query);
    expect(items[0]?.error?.message).toBe("out of paper");
  });

  test("throws WORKFLOW_NOT_FOUND", async () => {
    await using opened = await openWithWork(open);
    const { executions, workflows } = opened.store;
    await queue(opened.store);
    const list = (owner: string) =>
      executions.listExecutions(owner, { workflowId: "w1", limit: 1 });
    expect(await refusalOf(list("bob"))).toBe("WORKFLOW_NOT_FOUND");
    await workflows.deleteWorkflow("alice", "w1");
    expect(await refusalOf(list("alice"))).toBe("WORKFLOW_NOT_FOUND");
  });
}

function cancelSuite(open: () => Promise<OpenedStore>): void {
  test("ends an execution that nobody holds as cancelled", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const { result, touched } = await store.executions.cancelExecution("alice", "e1");
    expect(result).toMatchObject({ status: "cancelled", error: null, finishedUs: clock.wallUs() });
    expect(touched).toMatchObject({ feeds: ["alice"], executions: ["e1"], queued: [] });
    expect(await grants(store)).toMatchObject({ tasks: [], nextDueUs: null });
  });

  test("nobody holds one that waits for its next attempt", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { id: "failed" });
    await fail(store, await take(store));
    await queue(store, { id: "lost" });
    await take(store);
    clock.advance(leaseUs);
    await sweep(store);
    for (const id of ["failed", "lost"]) {
      const { result } = await store.executions.cancelExecution("alice", id);
      expect(result.status).toBe("cancelled");
    }
  });

  test("asks the agent that holds it to stop", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    const task = await take(store);
    const { result, touched } = await store.executions.cancelExecution("alice", "e1");
    expect(result.status).toBe("running");
    expect(touched).toMatchObject({ feeds: [], executions: ["e1"] });
    expect(await beat(store, task)).toStrictEqual({
      taskId: "e1",
      status: "cancel_requested",
      leaseLeftUs: leaseUs,
    });
  });

  test("within 10 s", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const task = await take(store);
    await store.executions.cancelExecution("alice", "e1");
    clock.advance(graceUs - 1);
    expect((await sweep(store)).result.nextDueUs).toBe(clock.steadyUs() + 1);
    expect((await see(store)).status).toBe("running");
    clock.advance(1);
    expect((await sweep(store)).touched).toMatchObject({ feeds: ["alice"], executions: ["e1"] });
    expect(await see(store)).toMatchObject({ status: "cancelled", error: null });
    expect(await refusalOf(complete(store, task))).toBe("LEASE_LOST");
  });

  test("what is completed within them is completed", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const task = await take(store);
    await store.executions.cancelExecution("alice", "e1");
    clock.advance(graceUs - 1);
    await complete(store, task);
    expect((await see(store)).status).toBe("completed");
  });

  test("changes nothing on one that has ended or was asked before", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const task = await take(store);
    await store.executions.cancelExecution("alice", "e1");
    clock.advance(graceUs - 1);
    const again = await store.executions.cancelExecution("alice", "e1");
    expect(again.touched).toMatchObject({ feeds: [], queued: [], executions: [] });
    expect((await sweep(store)).result.nextDueUs).toBe(clock.steadyUs() + 1);
    await complete(store, task);
    const ended = await store.executions.cancelExecution("alice", "e1");
    expect(ended.result.status).toBe("completed");
    expect(ended.touched).toMatchObject({ feeds: [], queued: [], executions: [] });
  });
}

function workflowStatusSuite(open: () => Promise<OpenedStore>): void {
  test("follows its executions, and a change moves updatedUs and the feed", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    const status = async () => {
      clock.advance(minute);
      const { status, updatedUs } = await store.workflows.getWorkflow("alice", "w1");
      return `${status} ${(updatedUs - begunUs) / minute}`;
    };
    const begunUs = clock.wallUs();
    await queue(store, { id: "waits" });
    expect(await status()).toBe("draft 0");
    const task = await take(store);
    expect(await status()).toBe("running 1");
    await queue(store, { id: "waits too" });
    expect(await status()).toBe("running 1");
    await fail(store, task, { retryAfterUs: minute });
    expect(await status()).toBe("running 1");
    await store.executions.cancelExecution("alice", "waits");
    expect(await status()).toBe("draft 4");
    await store.executions.cancelExecution("alice", "waits too");
    expect(await status()).toBe("failed 5");
    await queue(store, { id: "third" });
    expect(await status()).toBe("draft 6");
    await complete(store, await take(store));
    expect(await status()).toBe("completed 7");
  });

  test("its counters move with it", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store, executionDraft());
    await take(store);
    const total = async (status: "draft" | "running") =>
      (await store.workflows.listWorkflows("alice", { status, limit: 1 })).total;
    expect([await total("draft"), await total("running")]).toStrictEqual([0, 1]);
  });
}
