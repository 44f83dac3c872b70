import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, type TestContext, test } from "vitest";
import { sealflow, startSealflow } from "../cli/program.ts";
import { type RestCaller, restCall, restCaller } from "../doors/callers.ts";
import { type KillableServer, startKillableServer } from "../doors/killable-server.ts";
import { makeFolder } from "../suites/open-store.ts";

const preload = fileURLToPath(new URL("../chaos/unstable-time.ts", import.meta.url));
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

type Env = Readonly<Record<string, string>>;
type Finish = Pick<TestContext, "onTestFinished">;

/** Whose wall clock is wrong, and what does not depend on it. */
export function clockSuite(): void {
  test("the server's is set an hour forward, then two back: no lease and no time-out minds", async (context) => {
    await using folder = await makeFolder();
    await using server = await startKillableServer();
    const me = restCaller(server, { token: await newToken(server, "me"), agentId: "holder" });
    for (const id of ["holder", "nobody"]) await me.ok("POST", "/agents/register", { id });
    // Its tokens expire with the first step, and are not valid yet after the second.
    const env = await newClient(server, "me", context);
    const file = join(folder.path, "done");
    const agent = startAgent(server, { id: "worker", file, env }, context);
    await agent.until(/registered/);
    const call = async (id: string, body: object): Promise<string> =>
      (await me.ok("POST", `/agents/${id}/execute`, { wait: 0, ...body })).executionId;
    const worked = await call("worker", { timeout: 600, maxAttempts: 1 });
    const held = await call("holder", { timeout: 600 });
    const queued = await call("nobody", { startTimeout: 600 });
    const { tasks } = await me.ok("POST", "/tasks/poll", { wait: 5, lease: 300 });
    const read = (id: string) => me.ok("GET", `/executions/${id}`);
    const states = async () =>
      (await Promise.all([worked, held, queued].map(read))).map(
        ({ status, attempt }) => `${status} ${attempt}`,
      );
    await expect.poll(states, { timeout: 10_000 }).toEqual(["running 1", "running 1", "pending 0"]);

    for (const stepMs of [hourMs, -hourMs]) {
      server.stepClock(stepMs);
      await untilOffBy(me, stepMs);
      // Longer than a lease, and than the pause between two looks for silent agents.
      await me.ok("GET", `/executions/${queued}?wait=6`);
      expect(await me.ok("GET", "/agents/worker")).toMatchObject({ status: "active" });
      expect(await states()).toEqual(["running 1", "running 1", "pending 0"]);
    }
    const late = await call("nobody", { startTimeout: 1 });
    expect((await me.ok("GET", `/executions/${late}?wait=30`)).status).toBe("timed_out");
    writeFileSync(file, "");
    const done = await me.ok("GET", `/executions/${worked}?wait=60`);
    expect(done).toMatchObject({ status: "completed", attempt: 1, output: expect.any(Number) });
    await me.ok("POST", `/tasks/${held}/complete`, { leaseToken: tasks[0].leaseToken });
    expect(await states()).toEqual(["completed 1", "completed 1", "pending 0"]);
    expect(server.faults).toEqual([]);
  });

  test("an agent's is a day ahead or behind: it works as ever", async (context) => {
    await using server = await startKillableServer();
    const sub = "me";
    const me = restCaller(server, { token: await newToken(server, sub), agentId: "laptop" });
    const agents = [
      { id: "ahead", stepMs: dayMs, credentials: { SEALFLOW_TOKEN: me.token } },
      { id: "behind", stepMs: -dayMs, credentials: await newClient(server, sub, context) },
    ];
    const runs = agents.map(async ({ id, stepMs, credentials }) => {
      await using folder = await makeFolder();
      const file = join(folder.path, "done");
      const env = { ...credentials, ...wrongClock(stepMs) };
      const agent = startAgent(server, { id, file, env }, context);
      await agent.until(/registered/);
      const call = { wait: 0, maxAttempts: 1 };
      const { executionId } = await me.ok("POST", `/agents/${id}/execute`, call);
      // Longer than a lease.
      const held = await me.ok("GET", `/executions/${executionId}?wait=7`);
      expect(held).toMatchObject({ status: "running", attempt: 1 });
      writeFileSync(file, "");
      const done = await me.ok("GET", `/executions/${executionId}?wait=60`);
      expect(done).toMatchObject({ status: "completed", attempt: 1 });
      expect(Math.abs(done.output - Date.now() - stepMs)).toBeLessThan(hourMs);
    });
    await Promise.all(runs);
    expect(server.faults).toEqual([]);
  });
}

/** The environment of a process whose wall clock is so far off. */
function wrongClock(stepMs: number): Env {
  return { NODE_OPTIONS: `--import=${preload}`, TIME_STEP_MS: String(stepMs) };
}

/** A token that is valid by every clock of these tests. */
function newToken(server: KillableServer, sub: string): Promise<string> {
  return server.token({ sub, nowMs: Date.now() - 2 * hourMs, ttlSeconds: 86_400 });
}

/** The credentials of a client that the server knows, as an agent's environment. */
async function newClient(server: KillableServer, sub: string, context: Finish): Promise<Env> {
  const { onTestFinished } = context;
  const args = ["client", "add", sub, "--sub", sub, "--json", "--data-dir", server.dataDir];
  const { stdout } = await sealflow(args, { cwd: server.dataDir, onTestFinished });
  const { client_id, client_secret } = JSON.parse(stdout);
  const body = { grant_type: "client_credentials", client_id, client_secret };
  const isKnown = async () => (await restCall(server, "POST /auth/token", { body })).status === 200;
  while (!(await isKnown())) await pause(500);
  return { SEALFLOW_CLIENT_ID: client_id, SEALFLOW_CLIENT_SECRET: client_secret };
}

/**
 * `sealflow agent` under the shortest lease. Each of its tasks is done once there is a `file`, and
 * tells the time by the agent's clock.
 */
function startAgent(
  server: KillableServer,
  { id, file, env }: { id: string; file: string; env: Env },
  { onTestFinished }: Finish,
) {
  const untilThere = `until [ -e ${file} ]; do sleep 0.1; done`;
  const command = ["sh", "-c", `${untilThere}; ${process.execPath} -p 'Date.now()'`];
  const args = ["agent", "--id", id, "--server", server.httpUrl, "--lease", "5s", "--", ...command];
  return startSealflow(args, { cwd: server.dataDir, env, onTestFinished });
}

/** Waits until the server tells the time by a clock that is so far off. */
async function untilOffBy(me: RestCaller, stepMs: number): Promise<void> {
  let missedMs = Infinity;
  while (Math.abs(missedMs) > hourMs / 60) {
    const { serverTime } = await me.ok("GET", "/sync/pull");
    missedMs = Date.parse(serverTime) - Date.now() - stepMs;
  }
}
