import { describe, expect, test } from "vitest";
import { TaskAbortedError } from "../src/client/agent.ts";
import { FakeAgentService } from "./fake-agent-service.ts";
import { endless, sleep, start, unavailable, until } from "./running-agent.ts";

describe("a lease", () => {
  test("is kept while the handler works", async () => {
    const server = new FakeAgentService();
    server.leaseMs = 600;
    const agent = start(() => sleep(1500), { server });
    server.offer({ id: "ex_1" });
    await until(() => server.completed.length === 1);
    await agent.stop();
    expect(agent.kinds()).toEqual(["registered", "granted", "completed"]);
    expect(server.beats.length).toBeGreaterThanOrEqual(3);
    expect(server.beats.every(({ leaseToken }) => leaseToken === "ex_1-token")).toBe(true);
  });

  test("costs a short task no heartbeat", async () => {
    const agent = start(() => sleep(20));
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.completed.length === 1);
    await sleep(300);
    await agent.stop();
    expect(agent.server.beats).toEqual([]);
  });

  test("that the server ends stops the handler, and nothing is reported", async () => {
    const reasons: unknown[] = [];
    const agent = start(async (_task, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      reasons.push(signal.reason);
      return "too late";
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.beats.length > 0);
    agent.server.endLease("ex_1");
    await until(() => agent.kinds().includes("lost"));
    await agent.stop();
    expect(reasons).toMatchObject([{ why: "lease_lost" }]);
    expect(reasons[0]).toBeInstanceOf(TaskAbortedError);
    expect(agent.server.completed).toEqual([]);
    expect(agent.server.failed).toEqual([]);
  });

  test("that runs out while the server is away stops the handler", async () => {
    const server = new FakeAgentService();
    server.leaseMs = 500;
    server.failNext("heartbeat", ...Array.from({ length: 20 }, unavailable));
    const agent = start(endless, { server });
    server.offer({ id: "ex_1" });
    await until(() => agent.kinds().includes("lost"));
    await agent.stop();
    expect(agent.events).toContainEqual({
      kind: "stopping",
      taskId: "ex_1",
      attempt: 1,
      why: "lease_lost",
    });
    expect(server.failed).toEqual([]);
  });

  test("survives heartbeats that fail for a while", async () => {
    const server = new FakeAgentService();
    server.leaseMs = 3000;
    server.failNext("heartbeat", unavailable(), unavailable());
    const agent = start(() => sleep(1200), { server });
    server.offer({ id: "ex_1" });
    await until(() => server.completed.length === 1);
    await agent.stop();
    expect(agent.kinds()).not.toContain("lost");
    expect(server.beats.length).toBeGreaterThan(0);
  });
});

describe("a cancel", () => {
  test("is heard at once and ends the task", async () => {
    const agent = start(endless);
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.beats.length > 0);
    const askedAtMs = performance.now();
    agent.server.cancel("ex_1");
    await until(() => agent.server.failed.length === 1);
    expect(performance.now() - askedAtMs).toBeLessThan(1000);
    await agent.stop();
    expect(agent.server.failed).toMatchObject([{ error: { code: "CANCELLED" }, retryable: false }]);
    expect(agent.kinds()).toEqual(["registered", "granted", "stopping", "cancelled"]);
  });

  test("does not stop a result that comes all the same", async () => {
    const agent = start(async (_task, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return "saved";
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.beats.length > 0);
    agent.server.cancel("ex_1");
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(agent.server.completed[0]?.output).toBe('"saved"');
  });

  test("of one task leaves the others, and does not make the agent ask without pause", async () => {
    const agent = start(
      (task, signal) => (task.id === "ex_1" ? sleep(900) : endless(task, signal)),
      { concurrency: 2, graceMs: 0 },
    );
    agent.server.offer({ id: "ex_1" });
    agent.server.offer({ id: "ex_2" });
    await until(() => agent.server.beats.some(({ taskId }) => taskId === "ex_2"));
    agent.server.cancel("ex_1");
    await until(() => agent.server.completed.length === 1);
    expect(agent.server.beats.length).toBeLessThan(16);
    await agent.stop();
    expect(agent.server.released).toMatchObject([{ taskId: "ex_2" }]);
  });
});
