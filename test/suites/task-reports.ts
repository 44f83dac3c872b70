import { expect, test } from "vitest";
import { failureMessages } from "../../src/domain/execution.ts";
import { makeAgent } from "./drafts.ts";
import { minute, type OpenedStore, second } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";
import {
  complete,
  fail,
  grants,
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

const reports = [complete, fail, release];

/** The promises of completeTask, failTask and releaseTask. */
export function taskReportSuite(open: () => Promise<OpenedStore>): void {
  completeSuite(open);
  failSuite(open);
  releaseSuite(open);
  fenceSuite(open);
  repeatSuite(open);
}

function completeSuite(open: () => Promise<OpenedStore>): void {
  test("completeTask ends the execution as completed", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const task = await take(store);
    clock.advance(second);
    const { touched } = await complete(store, task, '{"pages":3}');
    expect(touched).toMatchObject({ feeds: ["alice"], queued: [], executions: ["e1"] });
    expect(await see(store)).toMatchObject({
      status: "completed",
      output: '{"pages":3}',
      error: null,
      finishedUs: clock.wallUs(),
    });
    expect((await sweep(store)).result.nextDueUs).toBeNull();
  });

  test("also after the lease ran out, while nobody else was granted it", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    for (const [id, isSwept] of Object.entries({ unswept: false, swept: true })) {
      await queue(store, { id });
      const task = await take(store);
      clock.advance(leaseUs);
      if (isSwept) await sweep(store);
      await complete(store, task);
      expect(await see(store, id)).toMatchObject({ status: "completed", output: '"done"' });
      expect(await takeIds(store)).toStrictEqual([]);
    }
  });
}

function failSuite(open: () => Promise<OpenedStore>): void {
  test("failTask queues the execution again, after a pause with jitter", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { maxAttempts: 100 });
    for (const [i, pauseS] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
      const random = i % 2 === 0 ? 1 : 0.5;
      const { touched } = await fail(store, await take(store), { random });
      const dueUs = clock.steadyUs() + pauseS * second * random;
      expect(touched).toMatchObject({
        feeds: [],
        queued: [{ owner: "alice", route: "c:", dueUs }],
        executions: ["e1"],
      });
      expect((await grants(store)).nextDueUs).toBe(dueUs);
      clock.advance(pauseS * second);
    }
    expect(await see(store)).toMatchObject({ status: "queued", attempt: 8, error: null });
  });

  test("the agent may say when", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    await fail(store, await take(store), { retryAfterUs: 0 });
    await fail(store, await take(store), { retryAfterUs: minute });
    expect((await grants(store)).nextDueUs).toBe(clock.steadyUs() + minute);
  });

  test("while attempts are left; else ends it as failed", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { maxAttempts: 2 });
    await fail(store, await take(store), { retryAfterUs: 0 });
    const { touched } = await fail(store, await take(store));
    expect(touched).toMatchObject({ feeds: ["alice"], queued: [], executions: ["e1"] });
    expect(await see(store)).toMatchObject({
      status: "failed",
      output: "",
      error: { failure: "AGENT_ERROR", code: "E_PRINTER", message: "out of paper" },
      attempt: 2,
      finishedUs: clock.wallUs(),
    });
  });

  test("ends it at once when the agent says so, or when it may run once only", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store, { id: "hopeless" });
    await fail(store, await take(store), { retryable: false, code: "", message: "" });
    const message = failureMessages.AGENT_ERROR;
    const error = { failure: "AGENT_ERROR", code: "AGENT_ERROR", message };
    expect(await see(store, "hopeless")).toMatchObject({ status: "failed", error });
    await queue(store, { id: "once", atMostOnce: true });
    await fail(store, await take(store));
    expect(await see(store, "once")).toMatchObject({
      status: "failed",
      error: { failure: "AGENT_ERROR", code: "E_PRINTER" },
    });
  });

  test("cancelled if that was asked", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    for (const report of [fail, release]) {
      await queue(store, { id: report.name });
      const task = await take(store);
      await store.executions.cancelExecution("alice", report.name);
      const { touched } = await report(store, task);
      expect(touched).toMatchObject({ feeds: ["alice"], queued: [], executions: [report.name] });
      expect(await see(store, report.name)).toMatchObject({ status: "cancelled", error: null });
    }
  });

  test("a failure after the lease ran out counts as a failure and as no loss", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { maxAttempts: 7 });
    for (let failures = 1; failures < 7; failures += 1) {
      const task = await take(store);
      clock.advance(leaseUs);
      await sweep(store);
      await fail(store, task, { retryAfterUs: 0 });
    }
    expect(await see(store)).toMatchObject({ status: "queued", attempt: 6 });
  });
}

function releaseSuite(open: () => Promise<OpenedStore>): void {
  test("releaseTask queues the execution again at once; counts as no attempt", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { maxAttempts: 1, atMostOnce: true });
    const first = await take(store);
    const { touched } = await release(store, first);
    const line = { owner: "alice", route: "c:", dueUs: clock.steadyUs() };
    expect(touched).toMatchObject({ feeds: [], queued: [line], executions: ["e1"] });
    const next = await take(store);
    expect(next.attempt).toBe(1);
    expect(next.leaseToken).not.toBe(first.leaseToken);
    await complete(store, next);
    expect(await see(store)).toMatchObject({ status: "completed", attempt: 1 });
  });
}

function fenceSuite(open: () => Promise<OpenedStore>): void {
  test("throws TASK_NOT_FOUND: unknown, or never granted to this agent", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    const others = [
      { owner: "alice", id: "agent-2" },
      { owner: "bob", id: "agent-1" },
    ];
    for (const { owner, id } of others) await makeAgent(store, owner, { id });
    await queue(store);
    const task = await take(store);
    for (const agent of others) {
      const report = { ...reportOf(task), output: "{}" };
      expect(await refusalOf(store.tasks.completeTask(agent, report))).toBe("TASK_NOT_FOUND");
    }
    for (const report of reports) {
      expect(await refusalOf(report(store, { ...task, id: "e2" }))).toBe("TASK_NOT_FOUND");
    }
  });

  test("throws LEASE_LOST for a token that is not the attempt's", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    const task = await take(store);
    for (const report of reports) {
      for (const leaseToken of ["another", ""]) {
        expect(await refusalOf(report(store, { ...task, leaseToken }))).toBe("LEASE_LOST");
      }
    }
    await fail(store, task);
    expect(await refusalOf(complete(store, { ...task, leaseToken: "" }))).toBe("LEASE_LOST");
  });

  test("throws LEASE_LOST for a token whose task was granted again", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store);
    const task = await take(store);
    clock.advance(leaseUs);
    await sweep(store);
    await take(store);
    for (const report of reports) expect(await refusalOf(report(store, task))).toBe("LEASE_LOST");
    expect(await see(store)).toMatchObject({ status: "running", attempt: 2 });
  });

  test("throws LEASE_LOST after the end by a time-out or a cancel, swept or not", async () => {
    await using opened = await openWithWork(open);
    const { store, clock } = opened;
    await queue(store, { id: "late", timeoutUs: 10 * second });
    await queue(store, { id: "cancelled" });
    const late = await take(store);
    const cancelled = await take(store);
    expect([late.id, cancelled.id]).toStrictEqual(["cancelled", "late"]);
    await store.executions.cancelExecution("alice", "cancelled");
    clock.advance(10 * second);
    for (const task of [late, cancelled]) {
      expect(await refusalOf(complete(store, task))).toBe("LEASE_LOST");
    }
    await sweep(store);
    for (const task of [late, cancelled]) {
      expect(await refusalOf(complete(store, task))).toBe("LEASE_LOST");
    }
  });
}

function repeatSuite(open: () => Promise<OpenedStore>): void {
  test("the same token and verb again changes nothing, even after a new grant", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    await queue(store);
    const first = await take(store);
    await fail(store, first, { retryAfterUs: 0 });
    const again = await fail(store, first, { retryable: false });
    expect(again.touched).toMatchObject({ feeds: [], queued: [], executions: [] });
    const second = await take(store);
    await fail(store, first);
    expect(await see(store)).toMatchObject({ status: "running", attempt: 2 });
    await release(store, second);
    await release(store, second);
    const third = await take(store);
    await complete(store, third, '"first"');
    await complete(store, third, '"second"');
    for (const [report, task] of [
      [fail, first],
      [release, second],
    ] as const) {
      await report(store, task);
    }
    expect(await see(store)).toMatchObject({ status: "completed", output: '"first"', attempt: 2 });
  });

  test("any other use of a reported token is LEASE_LOST", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    for (const reported of reports) {
      await queue(store, { id: reported.name });
      const task = await take(store);
      await reported(store, task);
      for (const other of reports.filter((it) => it !== reported)) {
        expect(await refusalOf(other(store, task))).toBe("LEASE_LOST");
      }
      await store.executions.cancelExecution("alice", reported.name);
    }
  });

  test("a reported token is of no use to another agent", async () => {
    await using opened = await openWithWork(open);
    const { store } = opened;
    const other = { owner: "alice", id: "agent-2" };
    await makeAgent(store, "alice", { id: "agent-2" });
    await queue(store);
    const task = await take(store);
    await release(store, task);
    await take(store, {}, other);
    const call = store.tasks.releaseTask(other, reportOf(task));
    expect(await refusalOf(call)).toBe("LEASE_LOST");
    await store.tasks.releaseTask(worker, reportOf(task));
  });
}
