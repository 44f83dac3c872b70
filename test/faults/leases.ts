import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, type TestContext, test } from "vitest";
import { type Running, startProgram, startSealflow } from "../cli/program.ts";
import { type Body, newOwner, type RestCaller } from "../doors/callers.ts";
import { type KillableServer, startKillableServer } from "../doors/killable-server.ts";
import { startLosingProxy } from "./losing-proxy.ts";

const bareAgent = fileURLToPath(new URL("bare-agent.ts", import.meta.url));

let server: KillableServer;

/** Who may report what, when leases run out. */
export function leaseSuite(): void {
  beforeAll(async () => {
    server = await startKillableServer();
  });
  afterAll(async () => {
    expect(server.faults).toEqual([]);
    await server[Symbol.asyncDispose]();
  });

  test("lost five times by agents that die at the start: AGENT_LOST", async (context) => {
    const { me, execute } = await stage();
    const id = await execute();
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const agent = startBareAgent(me.as("first"), 60_000, context);
      await agent.until(new RegExp(`^granted attempt ${attempt}$`, "m"));
      agent.send("SIGKILL");
    }
    await becomes(me, id, "failed");
    expect(await read(me, id)).toMatchObject({ attempt: 5, error: { code: "AGENT_LOST" } });
    expect(await me.as("second").ok("POST", "/tasks/poll", { wait: 0 })).toEqual({ tasks: [] });
  });

  test("outlives the loss of every second heartbeat's answer", async (context) => {
    const { me, execute } = await stage();
    let beats = 0;
    const isLost = (path: string) => {
      if (!path.endsWith("/HeartbeatTasks")) return false;
      beats += 1;
      return beats % 2 === 0;
    };
    await using proxy = await startLosingProxy(server, isLost);
    const agent = startAgent({ me: me.as("first"), url: proxy.httpUrl, seconds: 16 }, context);
    await agent.until(/registered/);
    const id = await execute({ maxAttempts: 1 });
    await becomes(me, id, "running");
    const others = await me.as("second").ok("POST", "/tasks/poll", { wait: 14 });
    expect(others).toEqual({ tasks: [] });
    await becomes(me, id, "completed");
    expect(await read(me, id)).toMatchObject({ attempt: 1, output: "by first" });
    expect(proxy.lost.length).toBeGreaterThanOrEqual(3);
  });

  test("lost by an agent that was stopped: what it reports later changes nothing", async (context) => {
    const { me, execute } = await stage();
    const first = startBareAgent(me.as("first"), 3000, context);
    const id = await execute();
    await first.until(/^granted attempt 1$/m);
    first.send("SIGSTOP");
    const second = me.as("second");
    const { leaseToken, ...task } = await take(second, 60);
    expect(task).toMatchObject({ id, attempt: 2 });
    first.send("SIGCONT");
    await first.until(/^told /m);
    expect(await read(me, id)).toMatchObject({ status: "running", agentId: "second", attempt: 2 });
    await second.ok("POST", `/tasks/${id}/complete`, { leaseToken, output: "by second" });
    const ended = await read(me, id);
    expect(ended).toMatchObject({ status: "completed", output: "by second", attempt: 2 });
    const count = first.stdout().match(/^told /gm)?.length ?? 0;
    await first.until(new RegExp(`(^told .*\\n){${count + 2}}`, "m"));
    expect(first.stdout()).not.toMatch(/^told (?!409 .*"LEASE_LOST")/m);
    expect(await read(me, id)).toEqual(ended);
  });

  test("lost by `sealflow agent` that was stopped: it drops the task and goes on", async (context) => {
    const { me, execute } = await stage();
    const agent = startAgent({ me: me.as("first"), url: server.httpUrl, seconds: 2 }, context);
    await agent.until(/registered/);
    const id = await execute();
    await becomes(me, id, "running");
    agent.send("SIGSTOP");
    const second = me.as("second");
    const { leaseToken, attempt } = await take(second, 60);
    expect(attempt).toBe(2);
    await second.ok("POST", `/tasks/${id}/complete`, { leaseToken, output: "by second" });

    agent.send("SIGCONT");
    await agent.until(new RegExp(`^${id} +attempt 1 .*lost`, "m"));
    expect(await read(me, id)).toMatchObject({ output: "by second", attempt: 2 });
    const next = await execute();
    await becomes(me, next, "completed");
    expect(await read(me, next)).toMatchObject({ output: "by first", agentId: "first" });
  });

  test("held through a cancel that the agent ignores: cancelled after the grace of 10 s", async () => {
    const { me, execute } = await stage();
    const id = await execute();
    const first = me.as("first");
    const { leaseToken } = await take(first, 600);
    const beganMs = performance.now();
    const asked = await me.ok("POST", `/executions/${id}/cancel`);
    expect(asked.status).toBe("running");
    const ended = await me.ok("GET", `/executions/${id}?wait=60`);
    const tookMs = performance.now() - beganMs;
    expect(ended.status).toBe("cancelled");
    expect(tookMs).toBeGreaterThan(9900);
    expect(tookMs).toBeLessThan(20_000);
    const report = { leaseToken };
    for (const verb of ["heartbeat", "complete", "fail", "release"]) {
      await first.refused("LEASE_LOST", "POST", `/tasks/${id}/${verb}`, report);
    }
    expect(await read(me, id)).toEqual(ended);
  });

  test("lost once by an execution that may run at most once: OUTCOME_UNKNOWN", async (context) => {
    const { me, execute } = await stage();
    const agent = startBareAgent(me.as("first"), 60_000, context);
    const id = await execute({ atMostOnce: true, maxAttempts: 5 });
    await agent.until(/^granted attempt 1$/m);
    agent.send("SIGKILL");
    const others = await me.as("second").ok("POST", "/tasks/poll", { wait: 8 });
    expect(others).toEqual({ tasks: [] });
    await becomes(me, id, "failed");
    expect(await read(me, id)).toMatchObject({ attempt: 1, error: { code: "OUTCOME_UNKNOWN" } });
  });

  test("that ran out while nobody else polls: the result is accepted all the same", async () => {
    const { me, execute } = await stage();
    const id = await execute();
    const { leaseToken } = await take(me.as("first"));
    await becomes(me, id, "pending");
    const report = { leaseToken, output: "late" };
    await me.as("first").ok("POST", `/tasks/${id}/complete`, report);
    const ended = await read(me, id);
    expect(ended).toMatchObject({ status: "completed", output: "late", attempt: 1 });
    await me.as("first").ok("POST", `/tasks/${id}/complete`, report);
    const { tasks } = await me.as("second").ok("POST", "/tasks/poll", { wait: 1 });
    expect(tasks).toEqual([]);
    expect(await me.ok("POST", `/executions/${id}/cancel`)).toMatchObject({ status: "completed" });
    expect(await read(me, id)).toEqual(ended);
  });
}

type Finish = Pick<TestContext, "onTestFinished">;

/** An owner with agents `first` and `second`, and a workflow. */
async function stage() {
  const me = await newOwner(server);
  for (const id of ["first", "second"]) await me.ok("POST", "/agents/register", { id });
  const { id } = await me.ok("POST", "/workflows", { name: "w" });
  const execute = async (body: object = {}): Promise<string> => {
    const run = await me.ok("POST", `/workflows/${id}/execute`, { wait: 0, ...body });
    return run.executionId;
  };
  return { me, execute };
}

const read = (me: RestCaller, id: string): Promise<Body> => me.ok("GET", `/executions/${id}`);

/** Polls until there is a task, under the shortest lease if no other is given. */
async function take(agent: RestCaller, lease = 5): Promise<Body> {
  const { tasks } = await agent.ok("POST", "/tasks/poll", { wait: 30, lease });
  return tasks[0];
}

function startBareAgent(me: RestCaller, workMs: number, { onTestFinished }: Finish): Running {
  const { token, agentId } = me;
  const env = { URL: server.httpUrl, TOKEN: token, AGENT: agentId, WORK_MS: `${workMs}` };
  return startProgram([bareAgent], { cwd: server.dataDir, env, onTestFinished });
}

/** `sealflow agent` under the shortest lease, whose tasks are a few seconds of sleep. */
function startAgent(
  { me, url, seconds }: { me: RestCaller; url: string; seconds: number },
  { onTestFinished }: Finish,
): Running {
  const command = ["sh", "-c", `sleep ${seconds} && echo by ${me.agentId}`];
  return startSealflow(
    ["agent", "--id", me.agentId, "--server", url, "--lease", "5s", "--", ...command],
    { cwd: server.dataDir, env: { SEALFLOW_TOKEN: me.token }, onTestFinished },
  );
}

/** Asks until it is so. */
async function becomes(me: RestCaller, id: string, status: string): Promise<void> {
  while ((await read(me, id)).status !== status) await pause(50);
}
