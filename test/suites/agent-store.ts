import { describe, expect, test } from "vitest";
import type { AgentQuery, Poll } from "../../src/storage/port.ts";
import { executionDraft, makeAgent, makeWorkflow, registration, resultOf } from "./drafts.ts";
import { minute, type OpenedStore, second } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";

const poll: Poll = { pollId: "", max: 1, leaseUs: 30 * second, isGone: () => false };

/** The promises of AgentStore, for any store. */
export function agentStoreSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: agents`, () => {
    describe("registerAgent", () => registerSuite(open));
    describe("getAgent and listAgents", () => readSuite(open));
    describe("deregisterAgent", () => deregisterSuite(open));
    describe("touchAgent, retireAgents and listHolders", () => lifeSuite(open));
  });
}

function registerSuite(open: () => Promise<OpenedStore>): void {
  test("registers an agent, and makes it active", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const given = registration({ capabilities: ["gpu", "pdf"], isPublic: true });
    const { result, touched } = await store.agents.registerAgent("alice", given);
    expect(result).toStrictEqual({
      created: true,
      agent: {
        ...given,
        owner: "alice",
        status: "active",
        registeredUs: clock.wallUs(),
        lastSeenUs: clock.wallUs(),
      },
    });
    expect(touched.feeds).toStrictEqual(["alice"]);
    expect(await store.records.head("alice")).toBe(clock.wallUs());
  });

  test("replaces the whole registration, and keeps since when it is registered", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const first = await makeAgent(store, "alice", { capabilities: ["gpu"], isPublic: true });
    clock.advance(minute);
    await store.agents.retireAgents(clock.wallUs());
    const given = registration({ name: "renamed", type: "browser" });
    const { result } = await store.agents.registerAgent("alice", given);
    expect(result).toStrictEqual({
      created: false,
      agent: {
        ...given,
        owner: "alice",
        status: "active",
        registeredUs: first.registeredUs,
        lastSeenUs: clock.wallUs(),
      },
    });
    expect(await refusalOf(store.agents.getAgent("bob", "agent-1"))).toBe("AGENT_NOT_FOUND");
    expect((await store.agents.listAgents("alice", { limit: 10 })).total).toBe(1);
    expect((await store.agents.listAgents("bob", { limit: 10 })).total).toBe(0);
  });

  test("after a deregistration it begins anew", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "alice");
    await store.agents.deregisterAgent("alice", "agent-1");
    clock.advance(minute);
    const { result } = await store.agents.registerAgent("alice", registration());
    expect(result).toMatchObject({ created: true, agent: { registeredUs: clock.wallUs() } });
  });

  test("throws AGENT_ID_TAKEN when another owner's public agent has the id", async () => {
    await using opened = await open();
    const { agents } = opened.store;
    await makeAgent(opened.store, "bob", { isPublic: true });
    const shared = registration({ isPublic: true });
    expect(await refusalOf(agents.registerAgent("alice", shared))).toBe("AGENT_ID_TAKEN");
    expect((await resultOf(agents.registerAgent("alice", registration()))).created).toBe(true);
    await agents.deregisterAgent("bob", "agent-1");
    expect((await resultOf(agents.registerAgent("alice", shared))).agent.isPublic).toBe(true);
  });
}

function readSuite(open: () => Promise<OpenedStore>): void {
  test("the own agent of that id, else the public one", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "bob", { isPublic: true });
    expect((await store.agents.getAgent("alice", "agent-1")).owner).toBe("bob");
    await makeAgent(store, "alice");
    expect((await store.agents.getAgent("alice", "agent-1")).owner).toBe("alice");
    expect((await store.agents.getAgent("bob", "agent-1")).owner).toBe("bob");
  });

  test("getAgent throws AGENT_NOT_FOUND", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeAgent(store, "bob");
    expect(await refusalOf(store.agents.getAgent("alice", "agent-1"))).toBe("AGENT_NOT_FOUND");
  });

  test("own agents, then public ones whose id is not also an own one; each part newest first", async () => {
    await using opened = await open();
    await fill(opened);
    expect(await readAll(opened, { limit: 10 })).toStrictEqual(expectedList);
  });

  test("pages go on across both parts, wherever they are cut", async () => {
    await using opened = await open();
    await fill(opened);
    for (const limit of [1, 2, 3, 4]) {
      expect(await readAll(opened, { limit })).toStrictEqual(expectedList);
    }
  });

  test("the status narrows both parts and the total", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await fill(opened);
    clock.advance(minute);
    await store.agents.retireAgents(clock.wallUs());
    await store.agents.touchAgent("alice", "own-1");
    await store.agents.touchAgent("carol", "public-2");
    expect(await readAll(opened, { limit: 1, status: "active" })).toStrictEqual([
      "alice own-1",
      "carol public-2",
    ]);
    expect(await readAll(opened, { limit: 1, status: "inactive" })).toStrictEqual([
      "alice hidden",
      "alice own-2",
      "bob public-1",
    ]);
  });

  test("an id that was ever an own one hides the public one", async () => {
    await using opened = await open();
    await fill(opened);
    await opened.store.agents.deregisterAgent("alice", "hidden");
    expect(await readAll(opened, { limit: 10 })).toStrictEqual(
      expectedList.filter((it) => it !== "alice hidden"),
    );
  });
}

const expectedList = [
  "alice hidden",
  "alice own-2",
  "alice own-1",
  "carol public-2",
  "bob public-1",
];

/** Own agents of two microseconds, one of them public; public ones of others, one of them hidden. */
async function fill({ store, clock }: OpenedStore): Promise<void> {
  await makeAgent(store, "alice", { id: "own-1", isPublic: true });
  await makeAgent(store, "alice", { id: "own-2" });
  await makeAgent(store, "bob", { id: "public-1", isPublic: true });
  await makeAgent(store, "carol", { id: "public-2", isPublic: true });
  await makeAgent(store, "bob", { id: "private", isPublic: false });
  clock.advance(1);
  await makeAgent(store, "carol", { id: "hidden", isPublic: true });
  await makeAgent(store, "alice", { id: "hidden" });
}

/** All pages of alice's list; the total is the same on each. */
async function readAll({ store }: OpenedStore, query: AgentQuery): Promise<string[]> {
  const seen: string[] = [];
  const totals = new Set<number>();
  let page = await store.agents.listAgents("alice", query);
  for (;;) {
    seen.push(...page.items.map(({ owner, id }) => `${owner} ${id}`));
    totals.add(page.total);
    const last = page.items.at(-1);
    if (last === undefined || !page.hasMore) break;
    const { id, owner, registeredUs: createdUs } = last;
    const after = { createdUs, id, isOwn: owner === "alice" };
    page = await store.agents.listAgents("alice", { ...query, after });
  }
  expect([...totals]).toStrictEqual([seen.length]);
  return seen;
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
