import { expect, test } from "vitest";
import { failureMessages } from "../../src/domain/execution.ts";
import { limits } from "../../src/domain/limits.ts";
import { makeAgent } from "./drafts.ts";
import { day, minute, type OpenedStore, second } from "./open-store.ts";
import {
  beat,
  complete,
  fail,
  graceUs,
  grants,
  leaseUs,
  openWithWork,
  queue,
  release,
  see,
  sweep,
  take,
  takeIds,
} from "./work.ts";

/** The promises of sweepTasks and restoreLeases, and of a lost lease. */
export function taskSweepSuite(open: () => Promise<OpenedStore>): void {
  lossSuite(open);
  timeOutSuite(open);
  roundSuite(open);
  restoreSuite(open);
}

function lossSuite(open: () => Promise<OpenedStore>): void {
  test("a lease that ran out: queued again at once", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    await take(store);
    clock.advance(leaseUs - 1);
    expect((await sweep(store)).result.nextDueUs).toBe(clock.steadyUs() + 1);
    expect((await see(store)).status).toBe("running");
    clock.advance(1);
    const { touched } = await sweep(store);
    const line = { owner: "alice", route: "c:", dueUs: clock.steadyUs() };
    expect(touched).toMatchObject({ feeds: [], queued: [line], executions: ["e1"] });
    expect((await see(store)).status).toBe("queued");
    expect((await take(store)).attempt).toBe(2);
  });

  test("the fifth ends it as failed: AGENT_LOST; failures have a count of their own", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    await fail(store, await take(store), { retryAfterUs: 0 });
    await fail(store, await take(store), { retryAfterUs: 0 });
    for (let losses = 1; losses <= limits.lossesMax; losses += 1) {
      expect((await take(store)).attempt).toBe(losses + 2);
      clock.advance(leaseUs);
      await sweep(store);
    }
    expect(await see(store)).toMatchObject({
      status: "failed",
      error: { failure: "AGENT_LOST", code: "AGENT_LOST", message: failureMessages.AGENT_LOST },
    });
  });

  test("of an at_most_once execution: failed, OUTCOME_UNKNOWN, never queued again", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { atMostOnce: true });
    await take(store);
    clock.advance(leaseUs);
    const { touched } = await sweep(store);
    expect(touched).toMatchObject({ feeds: ["alice"], queued: [], executions: ["e1"] });
    expect(await see(store)).toMatchObject({
      status: "failed",
      error: { failure: "OUTCOME_UNKNOWN", code: "OUTCOME_UNKNOWN" },
    });
    expect(await takeIds(store)).toStrictEqual([]);
  });

  test("a lease lost after a cancel was asked: cancelled", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { atMostOnce: true });
    await take(store, { leaseUs: 5 * second });
    await store.executions.cancelExecution("alice", "e1");
    clock.advance(5 * second);
    await sweep(store);
    expect(await see(store)).toMatchObject({ status: "cancelled", error: null });
  });

  test("of a deregistered agent: each counts as lost", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await makeAgent(store, "bob");
    await queue(store, { id: "once", atMostOnce: true });
    await queue(store, { id: "again" });
    await queue(store, { id: "cancelled" });
    const tasks = (await grants(store, { max: 3 })).tasks;
    await store.executions.cancelExecution("alice", "cancelled");
    await queue(store, { id: "bobs", workflowId: null, agentId: "agent-1" }, "bob");
    await take(store, {}, { owner: "bob", id: "agent-1" });
    const { touched } = await store.agents.deregisterAgent("alice", "agent-1");
    expect(touched.queued).toStrictEqual([
      { owner: "alice", route: "c:", dueUs: clock.steadyUs() },
    ]);
    expect(touched.executions.toSorted()).toStrictEqual(["again", "cancelled", "once"]);
    expect((await see(store, "once")).error?.failure).toBe("OUTCOME_UNKNOWN");
    expect((await see(store, "again")).status).toBe("queued");
    expect((await see(store, "cancelled")).status).toBe("cancelled");
    expect((await store.executions.getExecution("bob", "bobs")).status).toBe("running");
    await makeAgent(store, "alice");
    const again = tasks.find(({ id }) => id === "again");
    if (again !== undefined) await complete(store, again);
    expect((await see(store, "again")).status).toBe("completed");
  });
}

function timeOutSuite(open: () => Promise<OpenedStore>): void {
  test("the start time-out ends what was never granted: SCHEDULE_TO_START", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { startTimeoutUs: minute });
    expect((await sweep(store)).result.nextDueUs).toBe(clock.steadyUs() + minute);
    clock.advance(minute);
    const { touched } = await sweep(store);
    expect(touched).toMatchObject({ feeds: ["alice"], queued: [], executions: ["e1"] });
    const error = { failure: "SCHEDULE_TO_START", code: "SCHEDULE_TO_START" };
    expect(await see(store)).toMatchObject({
      status: "timed_out",
      error: { ...error, message: "Task timed out" },
      startedUs: null,
      finishedUs: clock.wallUs(),
    });
    expect((await store.workflows.getWorkflow("alice", "w1")).status).toBe("draft");
  });

  test("the start time-out ends with the first grant", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { startTimeoutUs: second });
    await release(store, await take(store));
    clock.advance(minute);
    await sweep(store);
    expect((await see(store)).status).toBe("queued");
  });

  test("the time-out counts from the first grant, retries included: EXECUTION", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { timeoutUs: minute });
    clock.advance(minute);
    await fail(store, await take(store), { retryAfterUs: 30 * second });
    clock.advance(30 * second);
    const task = await take(store, { leaseUs: minute });
    expect(task.timeLeftUs).toBe(30 * second);
    expect((await sweep(store)).result.nextDueUs).toBe(clock.steadyUs() + 30 * second);
    clock.advance(30 * second);
    await sweep(store);
    expect(await see(store)).toMatchObject({
      status: "timed_out",
      error: { failure: "EXECUTION", code: "EXECUTION", message: "Task timed out" },
    });
    expect((await store.workflows.getWorkflow("alice", "w1")).status).toBe("failed");
  });

  test("it ends what waits for its next attempt too", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { timeoutUs: minute });
    await fail(store, await take(store), { retryAfterUs: day });
    clock.advance(minute);
    await sweep(store);
    expect((await see(store)).error?.failure).toBe("EXECUTION");
    expect((await grants(store)).nextDueUs).toBeNull();
  });

  test("after a cancel was asked, the time-out ends it as cancelled", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { timeoutUs: 5 * second });
    await take(store);
    await store.executions.cancelExecution("alice", "e1");
    clock.advance(5 * second);
    await sweep(store);
    expect((await see(store)).status).toBe("cancelled");
  });

  test("a step of the wall clock ends nothing early, and nothing late", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { timeoutUs: minute });
    await take(store, { leaseUs: minute });
    clock.stepWall(day);
    await sweep(store);
    expect((await see(store)).status).toBe("running");
    clock.stepWall(-2 * day);
    clock.advance(minute);
    await sweep(store);
    expect((await see(store)).status).toBe("timed_out");
  });
}

function roundSuite(open: () => Promise<OpenedStore>): void {
  test("moves at most limit executions, the longest overdue first", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    for (const [i, id] of ["e3", "e1", "e2"].entries()) {
      await queue(store, { id, startTimeoutUs: second * (i + 1) });
    }
    clock.advance(minute);
    const overdueUs = clock.steadyUs() - minute + 3 * second;
    const first = await store.tasks.sweepTasks(2);
    expect(first.touched.executions.toSorted()).toStrictEqual(["e1", "e3"]);
    expect(first.result.nextDueUs).toBe(overdueUs);
    const second_ = await store.tasks.sweepTasks(2);
    expect(second_.touched.executions).toStrictEqual(["e2"]);
  });

  test("null: nothing is active", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    expect((await sweep(store)).result.nextDueUs).toBeNull();
    await queue(store);
    await store.executions.cancelExecution("alice", "e1");
    expect((await sweep(store)).result.nextDueUs).toBeNull();
  });
}

function restoreSuite(open: () => Promise<OpenedStore>): void {
  test("gives every held lease its full length again", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const task = await take(store);
    await beat(store, task, { leaseUs: minute });
    clock.advance(10 * minute);
    await store.tasks.restoreLeases();
    expect((await sweep(store)).result.nextDueUs).toBe(clock.steadyUs() + minute);
    clock.advance(minute - 1);
    await sweep(store);
    await complete(store, task);
    expect((await see(store)).status).toBe("completed");
  });

  test("but no time-out and no grace", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { id: "late", timeoutUs: minute });
    await take(store);
    await queue(store, { id: "cancelled" });
    await take(store);
    await store.executions.cancelExecution("alice", "cancelled");
    clock.advance(minute);
    await store.tasks.restoreLeases();
    await sweep(store);
    expect((await see(store, "late")).status).toBe("timed_out");
    expect((await see(store, "cancelled")).status).toBe("cancelled");
  });

  test("a clock that was set back between two runs prolongs no pause, time-out or grace", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    const ids = ["fresh", "failed", "held", "cancelled"];
    for (const id of ids) await queue(store, { id, timeoutUs: 2 * minute });
    const tasks = (await grants(store, { max: 3 })).tasks;
    const [cancelled, failed] = tasks;
    if (cancelled === undefined || failed === undefined) throw new Error("nothing to take");
    expect(tasks.map(({ id }) => id)).toStrictEqual(["cancelled", "failed", "fresh"]);
    await store.executions.cancelExecution("alice", "cancelled");
    await fail(store, failed, { retryAfterUs: minute });
    clock.advance(-day);
    await store.tasks.restoreLeases();
    expect(await takeIds(store, { max: 9 })).toStrictEqual(["held"]);
    expect((await grants(store)).nextDueUs).toBe(clock.steadyUs() + minute);
    clock.advance(graceUs);
    await sweep(store);
    expect((await see(store, "cancelled")).status).toBe("cancelled");
    clock.advance(2 * minute);
    await sweep(store);
    for (const id of ["fresh", "failed"]) expect((await see(store, id)).status).toBe("timed_out");
  });

  test("a clock that was set back prolongs no start time-out either", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { id: "waiting", startTimeoutUs: minute });
    clock.advance(-day);
    await store.tasks.restoreLeases();
    clock.advance(minute);
    await sweep(store);
    expect((await see(store, "waiting")).status).toBe("timed_out");
  });

  test("a pause that an agent asked for outlives a restart", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    await fail(store, await take(store), { retryAfterUs: 10 * minute });
    const dueUs = clock.steadyUs() + 10 * minute;
    clock.advance(minute);
    await store.tasks.restoreLeases();
    expect((await grants(store)).nextDueUs).toBe(dueUs);
  });
}
