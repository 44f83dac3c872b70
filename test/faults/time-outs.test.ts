import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { failureOf, newOwner, type RestCaller, reasonOf, rpcCaller } from "../doors/callers.ts";
import { type KillableServer, startKillableServer } from "../doors/killable-server.ts";

let server: KillableServer;
beforeAll(async () => {
  server = await startKillableServer();
});
afterAll(async () => {
  expect(server.faults).toEqual([]);
  await server[Symbol.asyncDispose]();
});

async function newWorkflow(me: RestCaller): Promise<string> {
  return (await me.ok("POST", "/workflows", { name: "w" })).id;
}

/** The ids of the workflows that a list of this status names. */
async function listed(me: RestCaller, status: string): Promise<string[]> {
  const { workflows } = await me.ok("GET", `/workflows?status=${status}`);
  return workflows.map(({ id }: { id: string }) => id);
}

/** How long something takes, and what comes of it. */
async function timed<T>(work: Promise<T>): Promise<{ readonly ms: number; readonly result: T }> {
  const beganMs = performance.now();
  const result = await work;
  return { ms: performance.now() - beganMs, result };
}

describe.concurrent("a time-out of 1.5 s, while the agent sleeps", () => {
  /** An agent that holds what it takes and says nothing. */
  async function sleeper() {
    const me = await newOwner(server);
    await me.ok("POST", "/agents/register", { id: "sleeper" });
    const id = await newWorkflow(me);
    const taken = me.as("sleeper").ok("POST", "/tasks/poll", { wait: 30, lease: 600 });
    return { me, id, taken };
  }

  async function expectEnded({ me, id, taken }: Awaited<ReturnType<typeof sleeper>>) {
    const [task] = (await taken).tasks;
    const ended = await me.ok("GET", `/executions/${task.id}`);
    expect(ended).toMatchObject({
      ...{ status: "timed_out", attempt: 1 },
      error: { code: "EXECUTION", message: "Task timed out" },
    });
    expect(await listed(me, "failed")).toEqual([id]);
    const report = { leaseToken: task.leaseToken };
    const path = `/tasks/${task.id}/complete`;
    await me.as("sleeper").refused("LEASE_LOST", "POST", path, report);
    expect(await me.ok("GET", `/executions/${task.id}`)).toEqual(ended);
    return task;
  }

  test("is 504 `Task timed out` to the REST caller that waits", async () => {
    const stage = await sleeper();
    const body = { timeout: "1.5s", wait: 20 };
    const { ms, result } = await timed(
      stage.me.call("POST", `/workflows/${stage.id}/execute`, { body }),
    );
    const task = await expectEnded(stage);
    expect([result.status, result.body]).toEqual([
      504,
      {
        success: false,
        error: {
          ...{ code: "TASK_TIMED_OUT", message: "Task timed out" },
          details: { executionId: task.id, timeoutKind: "EXECUTION" },
        },
      },
    ]);
    expect(ms).toBeGreaterThanOrEqual(1500);
    expect(ms).toBeLessThan(4000);
  });

  test("is DEADLINE_EXCEEDED `Task timed out` to the gRPC caller that waits", async () => {
    const stage = await sleeper();
    const { workflows } = rpcCaller(server, stage.me);
    const timeout = { seconds: 1n, nanos: 500_000_000 };
    const { ms, result } = await timed(
      failureOf(workflows.executeWorkflow({ id: stage.id, timeout, wait: { seconds: 20n } })),
    );
    expect([result.code, reasonOf(result), result.rawMessage]).toEqual([
      ...[Code.DeadlineExceeded, "TASK_TIMED_OUT", "Task timed out"],
    ]);
    expect(ms).toBeGreaterThanOrEqual(1500);
    expect(ms).toBeLessThan(4000);
    await expectEnded(stage);
  });
});

describe("without an agent", () => {
  test("an execution waits, as `pending`, for the one that registers and polls", async () => {
    const me = await newOwner(server);
    const id = await newWorkflow(me);
    const run = await me.call("POST", `/workflows/${id}/execute`, { body: { input: "hello" } });
    expect(run).toMatchObject({ status: 202, body: { status: "pending", attempt: 0 } });
    expect(run.body.hint).toContain("No agent is listening");
    expect(await listed(me, "pending")).toEqual([id]);
    await me.ok("POST", "/agents/register", { id: "new" });
    const { tasks } = await me.as("new").ok("POST", "/tasks/poll", { wait: 5 });
    expect(tasks).toMatchObject([{ id: run.body.executionId, attempt: 1, input: "hello" }]);
    expect(await listed(me, "running")).toEqual([id]);
  });

  test("an execution whose start time-out passes is timed out: SCHEDULE_TO_START", async () => {
    const me = await newOwner(server);
    const id = await newWorkflow(me);
    const body = { startTimeout: 1, wait: 20 };
    const waiting = timed(me.call("POST", `/workflows/${id}/execute`, { body }));
    const quick = await me.ok("POST", `/workflows/${id}/execute`, { startTimeout: 1 });
    expect(quick.status).toBe("pending");
    expect(await listed(me, "pending")).toEqual([id]);

    const { ms, result } = await waiting;
    expect(ms).toBeGreaterThanOrEqual(1000);
    expect(result.body.error).toMatchObject({ code: "TASK_TIMED_OUT", message: "Task timed out" });
    expect([result.status, result.body.error.details.timeoutKind]).toEqual([
      ...[504, "SCHEDULE_TO_START"],
    ]);
    const ended = await me.ok("GET", `/executions/${quick.executionId}?wait=20`);
    const error = { code: "SCHEDULE_TO_START", message: "Task timed out" };
    expect(ended).toMatchObject({ status: "timed_out", attempt: 0, error });
    await me.ok("POST", "/agents/register", { id: "late" });
    expect(await me.as("late").ok("POST", "/tasks/poll", { wait: 0 })).toEqual({ tasks: [] });
    // What has never started stays pending.
    expect(await listed(me, "pending")).toEqual([id]);
  });
});
