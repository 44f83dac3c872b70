import { expect, test } from "vitest";
import { limits } from "../../src/domain/limits.ts";
import { makeAgent } from "./drafts.ts";
import { minute, type OpenedStore, second } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";
import {
  beat,
  complete,
  fail,
  leaseUs,
  openWithWork,
  queue,
  release,
  reportOf,
  see,
  sweep,
  take,
  takeIds,
  worker,
} from "./work.ts";

/** The promises of heartbeatTasks. */
export function taskLeaseSuite(open: () => Promise<OpenedStore>): void {
  extendSuite(open);
  lostSuite(open);
}

function extendSuite(open: () => Promise<OpenedStore>): void {
  test("extends leases, one result a task", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { id: "e1" });
    await queue(store, { id: "e2" });
    const one = await take(store);
    const two = await take(store);
    clock.advance(leaseUs - 1);
    const { result, touched } = await store.tasks.heartbeatTasks(worker, [
      reportOf(two),
      { ...reportOf(one), leaseToken: "another" },
      { taskId: "unknown", leaseToken: one.leaseToken },
      { ...reportOf(one), leaseUs: minute },
    ]);
    expect(result).toStrictEqual([
      { taskId: "e2", status: "ok", leaseLeftUs: leaseUs },
      { taskId: "e1", status: "lease_lost", leaseLeftUs: 0 },
      { taskId: "unknown", status: "lease_lost", leaseLeftUs: 0 },
      { taskId: "e1", status: "ok", leaseLeftUs: minute },
    ]);
    expect(touched).toMatchObject({ feeds: [], queued: [], executions: [] });
    const { result: swept } = await sweep(store);
    expect(swept.nextDueUs).toBe(clock.steadyUs() + leaseUs);
  });

  test("absent: as long as before", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    const task = await take(store);
    await beat(store, task, { leaseUs: minute });
    expect((await beat(store, task)).leaseLeftUs).toBe(minute);
  });

  test("stores progress; absent: stays; empty: cleared", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    const task = await take(store);
    const progress = async () => (await see(store)).progress;
    await beat(store, task, { progress: "half" });
    expect(await progress()).toBe("half");
    await beat(store, task);
    expect(await progress()).toBe("half");
    await beat(store, { ...task, leaseToken: "another" }, { progress: "all" });
    expect(await progress()).toBe("half");
    await beat(store, task, { progress: "" });
    expect(await progress()).toBe("");
  });

  test("is the agent's alone to which the task was granted", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await makeAgent(store, "alice", { id: "agent-2" });
    await makeAgent(store, "bob");
    await queue(store);
    const task = await take(store);
    for (const agent of [
      { owner: "alice", id: "agent-2" },
      { owner: "bob", id: "agent-1" },
    ]) {
      const { result } = await store.tasks.heartbeatTasks(agent, [reportOf(task)]);
      expect(result).toMatchObject([{ status: "lease_lost" }]);
    }
  });

  test("is over with the attempt: reported, timed out, cancelled", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    const status = async (task: Parameters<typeof beat>[1]) => (await beat(store, task)).status;
    for (const report of [complete, fail, release]) {
      await queue(store, { id: report.name });
      const task = await take(store);
      await report(store, task);
      expect(await status(task)).toBe("lease_lost");
      await store.executions.cancelExecution("alice", report.name);
    }
    await queue(store, { id: "late", timeoutUs: second });
    const late = await take(store);
    clock.advance(second);
    expect(await status(late)).toBe("lease_lost");
    await queue(store, { id: "cancelled" });
    const cancelled = await take(store);
    await store.executions.cancelExecution("alice", "cancelled");
    clock.advance(10 * second);
    expect(await status(cancelled)).toBe("lease_lost");
  });
}

function lostSuite(open: () => Promise<OpenedStore>): void {
  test("a lease that ran out is taken up again before the sweeper has seen it", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { atMostOnce: true });
    const task = await take(store);
    clock.advance(leaseUs + second);
    expect(await beat(store, task)).toMatchObject({ status: "ok", leaseLeftUs: leaseUs });
    await sweep(store);
    expect((await see(store)).status).toBe("running");
  });

  test("a lease that ran out is taken up again while nobody else was granted the task", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const task = await take(store);
    clock.advance(leaseUs);
    await sweep(store);
    expect(await beat(store, task)).toMatchObject({ status: "ok", leaseLeftUs: leaseUs });
    expect(await see(store)).toMatchObject({ status: "running", attempt: 1 });
    expect(await takeIds(store)).toStrictEqual([]);
    await complete(store, task);
    expect(await see(store)).toMatchObject({ status: "completed", attempt: 1 });
  });

  test("granted again, to anyone, it is lost", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const task = await take(store);
    clock.advance(leaseUs);
    await sweep(store);
    const next = await take(store);
    expect((await beat(store, task)).status).toBe("lease_lost");
    expect((await beat(store, next)).status).toBe("ok");
  });

  test("the loss is taken back", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    let task = await take(store);
    for (let losses = 1; losses < limits.lossesMax; losses += 1) {
      clock.advance(leaseUs);
      await sweep(store);
      await beat(store, task);
    }
    for (let losses = 1; losses < limits.lossesMax; losses += 1) {
      expect((await see(store)).status).toBe("running");
      clock.advance(leaseUs);
      await sweep(store);
      task = await take(store);
    }
    expect(task.attempt).toBe(limits.lossesMax);
    clock.advance(leaseUs);
    await sweep(store);
    expect((await see(store)).error?.failure).toBe("AGENT_LOST");
    expect(await refusalOf(complete(store, task))).toBe("LEASE_LOST");
  });
}
