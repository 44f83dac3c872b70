import { describe, expect, test } from "vitest";
import type { Poll } from "../../src/storage/port.ts";
import { executionDraft, makeAgent, makeWorkflow, resultOf } from "./drafts.ts";
import { minute, type OpenedStore, second } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";

const poll: Poll = { pollId: "", max: 1, leaseUs: 30 * second, isGone: () => false };

/** How agents come and go: promises of AgentStore, for any store. */
export function agentLifeSuite(open: () => Promise<OpenedStore>): void {
  describe("deregisterAgent", () => deregisterSuite(open));
  describe("touchAgent, retireAgents and listHolders", () => lifeSuite(open));
}

function deregisterSuite(open: () => Promise<OpenedStore>): void {
  test("removes an own agent; AGENT_NOT_FOUND, also the second time", async () => {
    await using opened = await open();
    const { agents } = opened.store;
    await makeAgent(opened.store, "alice", { isPublic: true });
    expect(await refusalOf(agents.deregisterAgent("bob", "agent-1"))).toBe("AGENT_NOT_FOUND");
    const { touched } = await agents.deregisterAgent("alice", "agent-1");
    expect(touched.feeds).toStrictEqual(["alice"]);
    for (const owner of ["alice", "bob"]) {
      expect(await refusalOf(agents.getAgent(owner, "agent-1"))).toBe("AGENT_NOT_FOUND");
      expect((await agents.listAgents(owner, { limit: 10 })).total).toBe(0);
    }
    expect(await refusalOf(agents.deregisterAgent("alice", "agent-1"))).toBe("AGENT_NOT_FOUND");
  });

  test("its leases count as lost", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice");
    await makeWorkflow(store, "alice");
    await store.executions.createExecution("alice", executionDraft());
    await store.tasks.grantTasks({ owner: "alice", id: "agent-1" }, poll);
    const { touched } = await store.agents.deregisterAgent("alice", "agent-1");
    expect(touched.executions).toContain("e1");
    expect(touched.queued).toMatchObject([{ owner: "alice", route: "c:" }]);
    expect((await store.executions.getExecution("alice", "e1")).status).toBe("queued");
  });

  test("its id stays its owner's", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "alice");
    await makeAgent(store, "bob", { isPublic: true });
    await store.agents.deregisterAgent("alice", "agent-1");
    expect(await refusalOf(store.agents.getAgent("alice", "agent-1"))).toBe("AGENT_NOT_FOUND");
  });
}

function lifeSuite(open: () => Promise<OpenedStore>): void {
  test("touchAgent writes a sign of life", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "alice");
    clock.advance(minute);
    const { touched } = await store.agents.touchAgent("alice", "agent-1");
    expect(touched.feeds).toStrictEqual([]);
    expect((await store.agents.getAgent("alice", "agent-1")).lastSeenUs).toBe(clock.wallUs());
  });

  test("an inactive agent is active again", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "alice");
    clock.advance(minute);
    await store.agents.retireAgents(clock.wallUs());
    const head = await store.records.head("alice");
    const { touched } = await store.agents.touchAgent("alice", "agent-1");
    expect(touched.feeds).toStrictEqual(["alice"]);
    expect((await store.agents.getAgent("alice", "agent-1")).status).toBe("active");
    expect(await store.records.head("alice")).toBeGreaterThan(head);
  });

  test("touchAgent does nothing for an unknown one", async () => {
    await using opened = await open();
    const { agents } = opened.store;
    await makeAgent(opened.store, "alice");
    await agents.deregisterAgent("alice", "agent-1");
    for (const owner of ["alice", "bob"]) {
      expect((await agents.touchAgent(owner, "agent-1")).touched.feeds).toStrictEqual([]);
      expect(await refusalOf(agents.getAgent(owner, "agent-1"))).toBe("AGENT_NOT_FOUND");
    }
  });

  test("retireAgents makes agents inactive that were last seen before", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "alice", { id: "silent" });
    await makeAgent(store, "bob", { id: "silent" });
    clock.advance(minute);
    await makeAgent(store, "alice", { id: "heard" });
    const { result, touched } = await store.agents.retireAgents(clock.wallUs());
    expect(result).toStrictEqual({ hasMore: false });
    expect(new Set(touched.feeds)).toStrictEqual(new Set(["alice", "bob"]));
    expect((await store.agents.getAgent("alice", "silent")).status).toBe("inactive");
    expect((await store.agents.getAgent("alice", "heard")).status).toBe("active");
    const again = await store.agents.retireAgents(clock.wallUs());
    expect(again.touched.feeds).toStrictEqual([]);
  });

  test("at most 100", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const ids = Array.from({ length: 101 }, (_, i) => `agent-${i}`);
    await Promise.all(ids.map((id) => makeAgent(store, "alice", { id })));
    clock.advance(minute);
    const first = await resultOf(store.agents.retireAgents(clock.wallUs()));
    expect(first).toStrictEqual({ hasMore: true });
    const active = () => store.agents.listAgents("alice", { limit: 1, status: "active" });
    expect((await active()).total).toBe(1);
    const second = await resultOf(store.agents.retireAgents(clock.wallUs()));
    expect(second).toStrictEqual({ hasMore: false });
    expect((await active()).total).toBe(0);
  });

  test("listHolders: registered agents of the owner that hold a lease now", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeWorkflow(store, "alice");
    await makeAgent(store, "alice", { id: "idle" });
    await makeAgent(store, "alice", { id: "holder" });
    await store.executions.createExecution("alice", executionDraft());
    await store.tasks.grantTasks({ owner: "alice", id: "holder" }, poll);
    const holders = async (owner: string) =>
      (await store.agents.listHolders(owner)).map(({ id }) => id);
    expect(await holders("alice")).toStrictEqual(["holder"]);
    expect(await holders("bob")).toStrictEqual([]);
    clock.advance(poll.leaseUs + 1);
    expect(await holders("alice")).toStrictEqual([]);
  });
}
