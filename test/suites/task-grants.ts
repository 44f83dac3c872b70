import { expect, test } from "vitest";
import type { FeedQuery } from "../../src/storage/port.ts";
import { makeAgent, makeWorkflow, registration } from "./drafts.ts";
import { minute, type OpenedStore, second } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";
import {
  beat,
  complete,
  fail,
  grants,
  leaseUs,
  openWithWork,
  poll,
  queue,
  release,
  see,
  sweep,
  take,
  takeIds,
  worker,
} from "./work.ts";

const executionFeed: FeedQuery = {
  after: 0,
  limit: 10,
  bytesMax: 1_000_000,
  withRecords: false,
  withTombstones: false,
  kinds: new Set(["execution"] as const),
  types: [],
  entityIds: [],
};

/** The promises of grantTasks. */
export function taskGrantSuite(open: () => Promise<OpenedStore>): void {
  leaseSuite(open);
  choiceSuite(open);
  ownerSuite(open);
  repeatSuite(open);
}

function leaseSuite(open: () => Promise<OpenedStore>): void {
  test("each grant is a lease with a new token, and holds all that the agent needs", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { input: '{"day":"friday"}', timeoutUs: minute });
    clock.advance(second);
    const { result, touched } = await store.tasks.grantTasks(worker, poll());
    const [task] = result.tasks;
    expect(result).toStrictEqual({
      capabilities: [],
      nextDueUs: null,
      tasks: [
        {
          id: "e1",
          workflowId: "w1",
          attempt: 1,
          leaseToken: task?.leaseToken,
          leaseUs,
          timeLeftUs: minute,
          name: "nightly report",
          input: '{"day":"friday"}',
          encryptedData: "c2VjcmV0",
          encryptionKey: "the key",
          progress: "",
        },
      ],
    });
    expect(task?.leaseToken).toMatch(/^[\w-]{22}$/);
    expect(touched).toMatchObject({ feeds: ["alice"], queued: [], executions: [] });
    expect(await see(store)).toMatchObject({
      status: "running",
      agentId: "agent-1",
      attempt: 1,
      startedUs: clock.wallUs(),
    });
  });

  test("a call of an agent has no name, payload and key", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store, { workflowId: null, agentId: "agent-1", input: "[1]" });
    expect(await take(store)).toMatchObject({
      workflowId: "",
      name: "",
      input: "[1]",
      encryptedData: "",
      encryptionKey: "",
    });
    expect((await see(store)).keyReleases).toStrictEqual([]);
  });

  test("the next attempt has its number, the progress, and what is left of the time-out", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { timeoutUs: minute });
    const first = await take(store);
    await beat(store, first, { progress: "half" });
    clock.advance(second);
    await fail(store, first, { retryAfterUs: 0 });
    const next = await take(store);
    expect(next).toMatchObject({ attempt: 2, progress: "half", timeLeftUs: minute - second });
    expect(next.leaseToken).not.toBe(first.leaseToken);
  });

  test("only the first grant takes a position of the feed", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    await release(store, await take(store));
    const before = await store.records.readFeed("alice", executionFeed);
    clock.advance(second);
    const { touched } = await store.tasks.grantTasks(worker, poll());
    expect(touched.feeds).toStrictEqual([]);
    const after = await store.records.readFeed("alice", executionFeed);
    expect(after.head).toBe(before.head);
    const [change] = before.items.map((item) => item.change);
    expect(change).toMatchObject({ id: "e1", status: "queued" });
    expect(after.items).toStrictEqual([{ change: { ...change, status: "running" } }]);
  });

  test("a grant after a lost lease tells the execution: the old attempt is over", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    await take(store);
    clock.advance(leaseUs);
    await sweep(store);
    const { touched } = await store.tasks.grantTasks(worker, poll());
    expect(touched.executions).toStrictEqual(["e1"]);
  });

  test("throws AGENT_NOT_FOUND for an unregistered caller, in every call", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    const task = await take(store);
    await store.agents.deregisterAgent("alice", "agent-1");
    const calls = [
      () => grants(store),
      () => grants(store, {}, { owner: "bob", id: "agent-1" }),
      () => beat(store, task),
      () => complete(store, task),
      () => fail(store, task),
      () => release(store, task),
    ];
    for (const call of calls) expect(await refusalOf(call())).toBe("AGENT_NOT_FOUND");
  });

  test("nothing is granted when the caller has left", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    expect(await takeIds(store, { isGone: () => true })).toStrictEqual([]);
    let looks = 0;
    const leaves = () => {
      looks += 1;
      return looks > 1;
    };
    expect(await takeIds(store, { isGone: leaves })).toStrictEqual([]);
    expect(looks).toBe(2);
    expect(await takeIds(store)).toStrictEqual(["e1"]);
  });
}

function choiceSuite(open: () => Promise<OpenedStore>): void {
  test("oldest due first, up to max, across all lines that the agent may take from", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "alice", { capabilities: ["gpu", "pdf"] });
    const sets = [[], ["gpu"], ["pdf"], ["gpu", "pdf"], ["gpu", "tpu"], ["g"]];
    for (const [i, requiredCapabilities] of sets.entries()) {
      await makeWorkflow(store, "alice", { id: `w${i}`, requiredCapabilities });
    }
    for (const [i, workflow] of [3, 4, 1, 0, 5, 2, 3, 0].entries()) {
      await queue(store, { id: `e${i}`, workflowId: `w${workflow}` });
      clock.advance(1);
    }
    await queue(store, { id: "e8", workflowId: null, agentId: "agent-1" });
    expect(await takeIds(store, { max: 1 })).toStrictEqual(["e0"]);
    expect(await takeIds(store, { max: 2 })).toStrictEqual(["e2", "e3"]);
    const { result } = await store.tasks.grantTasks(worker, poll({ max: 32 }));
    expect(result.tasks.map(({ id }) => id)).toStrictEqual(["e5", "e6", "e7", "e8"]);
    expect(result).toMatchObject({ capabilities: ["gpu", "pdf"], nextDueUs: null });
  });

  test("capabilities count at the grant", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await makeWorkflow(store, "alice", { id: "w2", requiredCapabilities: ["gpu"] });
    await queue(store, { workflowId: "w2" });
    expect(await takeIds(store)).toStrictEqual([]);
    await makeAgent(store, "alice", { capabilities: ["gpu"] });
    expect(await takeIds(store)).toStrictEqual(["e1"]);
  });

  test("what waits for its next attempt is granted when it is due, and says when that is", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    await fail(store, await take(store), { retryAfterUs: minute });
    const dueUs = clock.steadyUs() + minute;
    expect(await grants(store)).toMatchObject({ tasks: [], nextDueUs: dueUs });
    clock.advance(minute - 1);
    expect(await grants(store)).toMatchObject({ tasks: [], nextDueUs: dueUs });
    clock.advance(1);
    expect(await takeIds(store)).toStrictEqual(["e1"]);
  });

  test("when something was granted, what is left is not told", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store, { id: "e1" });
    await queue(store, { id: "e2" });
    expect((await grants(store)).nextDueUs).toBeNull();
    expect(await takeIds(store)).toStrictEqual(["e2"]);
  });

  test("what has timed out is granted no more, swept or not", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { id: "started", timeoutUs: minute });
    await fail(store, await take(store), { retryAfterUs: 0 });
    await queue(store, { id: "never started", startTimeoutUs: minute });
    clock.advance(minute);
    expect(await grants(store, { max: 9 })).toMatchObject({ tasks: [], nextDueUs: null });
  });

  test("two polls at once are never granted the same", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await makeAgent(store, "alice", { id: "agent-2" });
    await Promise.all(["e1", "e2", "e3"].map((id) => queue(store, { id })));
    const other = { owner: "alice", id: "agent-2" };
    const taken = await Promise.all([
      takeIds(store, { max: 2 }),
      takeIds(store, { max: 2 }, other),
      takeIds(store, { max: 2 }),
    ]);
    expect(taken.flat().toSorted()).toStrictEqual(["e1", "e2", "e3"]);
  });
}

function ownerSuite(open: () => Promise<OpenedStore>): void {
  const shared = { owner: "bob", id: "shared" };

  async function openShared(): Promise<OpenedStore> {
    const opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "bob", { id: "shared", isPublic: true });
    const runs = [
      ["alice", "a1"],
      ["carol", "c1"],
      ["alice", "a2"],
      ["bob", "b1"],
    ] as const;
    for (const [owner, id] of runs) {
      await queue(store, { id, workflowId: null, agentId: "shared" }, owner);
      clock.advance(1);
    }
    return opened;
  }

  test("grants executions of one owner, the one who has waited longest", async () => {
    await using opened = await openShared();
    const { store } = opened;
    expect(await takeIds(store, { max: 9 }, shared)).toStrictEqual(["a1", "a2"]);
    expect(await takeIds(store, { max: 9 }, shared)).toStrictEqual(["c1"]);
    expect(await takeIds(store, { max: 9 }, shared)).toStrictEqual(["b1"]);
  });

  test("an agent that is public no more works for its owner alone", async () => {
    await using opened = await openShared();
    const { store, clock } = opened;
    await store.agents.registerAgent("bob", registration({ id: "shared" }));
    const dueUs = clock.steadyUs();
    expect(await takeIds(store, { max: 9 }, shared)).toStrictEqual(["b1"]);
    expect(await grants(store, { max: 9 }, shared)).toMatchObject({ tasks: [], nextDueUs: null });
    await store.agents.registerAgent("bob", registration({ id: "shared", isPublic: true }));
    const { nextDueUs } = await grants(store, { max: 9, isGone: () => true }, shared);
    expect(nextDueUs).toBe(dueUs - 4);
  });

  test("another owner's agent of the same id takes nothing", async () => {
    await using opened = await openShared();
    const { store } = opened;
    await makeAgent(store, "alice", { id: "shared" });
    const other = { owner: "alice", id: "shared" };
    expect(await takeIds(store, { max: 9 }, other)).toStrictEqual([]);
  });

  test("capabilities alone never choose another owner's agent", async () => {
    await using opened = await openShared();
    const { store } = opened;
    await makeWorkflow(store, "alice", { allowPublic: true });
    await queue(store);
    const taken = [];
    for (let i = 0; i < 4; i += 1) taken.push(...(await takeIds(store, { max: 9 }, shared)));
    expect(taken).not.toContain("e1");
  });
}

function repeatSuite(open: () => Promise<OpenedStore>): void {
  const pollId = "p1";

  test("with a pollId, the grants of that poll which the agent still holds are answered", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { id: "e1" });
    await queue(store, { id: "e2" });
    const first = await grants(store, { pollId, max: 2 });
    await queue(store, { id: "e3" });
    clock.advance(second);
    const [one, two] = first.tasks;
    if (one === undefined || two === undefined) throw new Error("nothing to take");
    await beat(store, one, { progress: "half" });
    clock.advance(second);
    const { result, touched } = await store.tasks.grantTasks(worker, poll({ pollId, max: 2 }));
    const leftUs = two.timeLeftUs - 2 * second;
    expect(result.tasks).toStrictEqual([
      { ...one, leaseUs: leaseUs - second, timeLeftUs: leftUs, progress: "half" },
      { ...two, leaseUs: leaseUs - 2 * second, timeLeftUs: leftUs },
    ]);
    expect(touched).toMatchObject({ feeds: [], queued: [], executions: [] });
    expect((await see(store)).keyReleases).toHaveLength(1);
    await complete(store, one);
    const again = await grants(store, { pollId, max: 2 });
    expect(again.tasks.map(({ id }) => id)).toStrictEqual(["e2"]);
  });

  test("none left is a fresh poll", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { id: "e1" });
    await complete(store, await take(store, { pollId }));
    expect(await takeIds(store, { pollId })).toStrictEqual([]);
    await queue(store, { id: "e2" });
    expect(await takeIds(store, { pollId })).toStrictEqual(["e2"]);
    clock.advance(leaseUs);
    await sweep(store);
    expect(await take(store, { pollId })).toMatchObject({ id: "e2", attempt: 2 });
  });

  test("a pollId counts for one agent", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await makeAgent(store, "alice", { id: "agent-2" });
    await queue(store);
    await take(store, { pollId });
    expect(await takeIds(store, { pollId }, { owner: "alice", id: "agent-2" })).toStrictEqual([]);
  });

  test("the same poll twice at once is granted once", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store, { id: "e1" });
    await queue(store, { id: "e2" });
    const both = await Promise.all([takeIds(store, { pollId }), takeIds(store, { pollId })]);
    expect(both).toStrictEqual([["e1"], ["e1"]]);
  });
}
