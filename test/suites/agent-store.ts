import { describe, expect, test } from "vitest";
import type { AgentQuery } from "../../src/storage/port.ts";
import { agentLifeSuite } from "./agent-life.ts";
import { makeAgent, registration, resultOf } from "./drafts.ts";
import { minute, type OpenedStore } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";

/** The promises of AgentStore, for any store. */
export function agentStoreSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: agents`, () => {
    describe("registerAgent", () => registerSuite(open));
    describe("getAgent and listAgents", () => readSuite(open));
    agentLifeSuite(open);
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
