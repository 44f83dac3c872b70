import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { newKey } from "../src/client/crypto.ts";
import { here } from "./cli/here.ts";
import { isRunning } from "./cli/processes.ts";
import {
  newDir,
  type Running,
  type Served,
  sealflow,
  serve,
  startSealflow,
} from "./cli/program.ts";
import { restCaller } from "./doors/callers.ts";
import { startKillableServer } from "./doors/killable-server.ts";

// Every test starts processes; on a busy machine each takes seconds to load.
vi.setConfig({ testTimeout: 120_000 });

/** Reads its task and does what the input says. */
const program = `
const task = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const { say, code, sleepMs, stubborn } = task.input;
if (stubborn) process.on("SIGTERM", () => {});
if (say) process.stdout.write(say);
else process.stdout.write(JSON.stringify({ words: task.input.text?.split(" ").length,
  payload: task.payload, secrets: Object.keys(process.env).filter((n) => n.startsWith("SEALFLOW")) }));
process.stderr.write("pid " + process.pid + "\\nwhy\\n");
process.exitCode = code ?? 0;
if (sleepMs) setTimeout(() => {}, sleepMs);
`;

test("any program is an agent: it registers, does tasks, and drains on Ctrl-C", async () => {
  const { server, cwd, mine } = await startHouse();
  const agent = startAgent({ server, cwd }, ["--id", "counter", "--capability", "text"]);
  await agent.until(
    new RegExp(`^counter: registered at ${server.url}, capabilities text, 1 at a time\n`),
  );
  const draft = { name: "Count", encryptedData: "b3BhcXVl", requiredCapabilities: ["text"] };
  const { body: workflow } = await server.call(mine, "/workflows", draft);
  const run = await server.call(mine, `/workflows/${workflow.id}/execute`, {
    input: { text: "to be or not to be" },
    wait: 20,
  });
  expect(run).toMatchObject({
    status: 200,
    body: { status: "completed", agentId: "counter", output: { words: 6, secrets: [] } },
  });
  await agent.until(new RegExp(`^${run.body.executionId}  attempt 1  completed in \\d+ ms$`, "m"));
  agent.send("SIGINT");
  expect(await agent.exited).toBe(0);
  expect(agent.stdout()).toMatch(/\ncounter: stopped; nothing was held\n$/);
});

test("text is a result, an exit code a failure, and stderr is told when asked to", async () => {
  const { server, cwd, mine } = await startHouse();
  const agent = startAgent({ server, cwd }, ["--id", "a", "--report-stderr"]);
  await agent.until(/registered/);
  expect((await runOn(server, mine, { say: "plain words\n" })).body).toMatchObject({
    status: "completed",
    output: "plain words",
  });
  const failed = await runOn(server, mine, { code: 3 });
  expect(failed.body).toMatchObject({ status: "failed", error: { code: "EXIT_3" } });
  expect(failed.body.error.message).toContain("why");
  await agent.until(/attempt 1 {2}failed in \d+ ms: EXIT_3/);
});

test("Ctrl-C lets a task finish, and says so", async () => {
  const { server, cwd, mine } = await startHouse();
  const agent = startAgent({ server, cwd }, ["--id", "a"]);
  const id = await startTask({ server, mine, agent }, { say: "done", sleepMs: 700 });
  agent.send("SIGINT");
  expect(await agent.exited).toBe(0);
  expect(agent.stdout()).toContain("a: draining, 1 held.");
  expect(agent.stdout()).toContain(`a: stopped; finished ${id}\n`);
  expect((await server.call(mine, `/executions/${id}`)).body).toMatchObject({
    status: "completed",
    output: "done",
  });
});

test("what does not finish in time is given back, and says so", async () => {
  const { server, cwd, mine } = await startHouse();
  const agent = startAgent({ server, cwd }, ["--id", "a", "--drain", "0s"]);
  const id = await startTask({ server, mine, agent }, { sleepMs: 60_000 });
  agent.send("SIGTERM");
  expect(await agent.exited).toBe(0);
  expect(agent.stdout()).toMatch(new RegExp(`^${id}  attempt 1  given back after `, "m"));
  expect(agent.stdout()).toContain(`a: stopped; gave back ${id}\n`);
  expect((await server.call(mine, `/executions/${id}`)).body.status).toBe("pending");
});

test("a second Ctrl-C kills at once, and what was started with it", async () => {
  const { server, cwd, mine } = await startHouse();
  const agent = startAgent({ server, cwd }, ["--id", "a"]);
  await startTask({ server, mine, agent }, { sleepMs: 60_000, stubborn: true });
  const [, child = ""] = await agent.until(/^pid (\d+)$/m);
  agent.send("SIGINT");
  await agent.until(/draining/);
  agent.send("SIGINT");
  expect(await agent.exited).toBe(1);
  await expect.poll(() => isRunning(Number(child))).toBe(false);
});

test("a server that dies while a command runs gets its result when it is back", async () => {
  await using server = await startKillableServer();
  const cwd = newDir();
  const me = restCaller(server, { token: await server.token({ sub: "me" }), agentId: "laptop" });
  writeFileSync(join(cwd, "program.cjs"), program);
  const agent = startSealflow(
    [
      ...["agent", "--id", "a", "--sub", "me", "--server", server.httpUrl],
      ...["--data-dir", server.dataDir, "--", process.execPath, "program.cjs"],
    ],
    { cwd },
  );
  await agent.until(/registered/);
  const input = { say: "outlived it", sleepMs: 3000 };
  const { executionId } = await me.ok("POST", "/agents/a/execute", { input, wait: 0 });
  await agent.until(/^why$/m);
  await server.kill();
  await agent.until(/failed: .*Trying again/);
  await server.start();
  const ended = await me.ok("GET", `/executions/${executionId}?wait=30`);
  expect(ended).toMatchObject({ status: "completed", output: "outlived it", attempt: 1 });
  agent.send("SIGTERM");
  expect(await agent.exited).toBe(0);
});

test("it never does more at a time than it may", async () => {
  const { server, cwd, mine } = await startHouse();
  const agent = startAgent({ server, cwd }, ["--id", "a", "--concurrency", "2"]);
  await agent.until(/registered/);
  const input = { say: "x", sleepMs: 400 };
  const runs = Array.from({ length: 5 }, () => runOn(server, mine, input));
  const held = async () => {
    const { body } = await server.call(mine, "/sync/pull?kinds=execution");
    const changes: readonly { readonly status: string }[] = body.changes ?? [];
    return changes.filter(({ status }) => status === "running").length;
  };
  let most = 0;
  const watch = setInterval(async () => {
    most = Math.max(most, await held());
  }, 100);
  const ended = await Promise.all(runs);
  clearInterval(watch);
  expect(ended.map(({ body }) => body.status)).toEqual(Array(5).fill("completed"));
  expect(most).toBe(2);
});

test("a client's credentials are enough, and what is sealed comes open", async () => {
  const { server, cwd, mine } = await startHouse();
  const { stdout } = await here(["client", "add", "bot", "--sub", "me", "--json"], { cwd });
  const { client_id, client_secret } = JSON.parse(stdout);
  const key = newKey();
  const sealing = { cwd, env: { SEALFLOW_KEY: key } };
  const agent = startSealflow(
    ["agent", "--id", "a", "--server", server.url, "--", process.execPath, "-e", program],
    {
      cwd,
      env: {
        SEALFLOW_CLIENT_ID: client_id,
        SEALFLOW_CLIENT_SECRET: client_secret,
        SEALFLOW_KEY: key,
      },
    },
  );
  await agent.until(/registered/);
  const sealed = await sealflow(["seal"], { ...sealing, stdin: '{"text":"one two"}' });
  const ran = await runOn(server, mine, sealed.stdout.trim());
  expect(ran.body.status).toBe("completed");
  const opened = await sealflow(["open"], { ...sealing, stdin: ran.body.output });
  expect(JSON.parse(opened.stdout)).toMatchObject({ words: 2, secrets: [] });
});

test("credentials that are refused end it with 3", async () => {
  const { server, cwd } = await startHouse();
  const elsewhere = newDir();
  const { stdout } = await here(["token", "--sub", "me"], { cwd: elsewhere });
  const args = ["agent", "--id", "a", "--server", server.url, "--", "cat"];
  const env = { SEALFLOW_TOKEN: stdout.trim() };
  const refused = await sealflow(args, { cwd, env });
  expect(refused).toMatchObject({ code: 3, stdout: "" });
  expect(refused.stderr).toMatch(/^sealflow agent: [^\n]*\n$/);
});

test("a server that is not there is waited for, and said once", async () => {
  const cwd = newDir();
  await here(["token", "--sub", "me"], { cwd });
  const url = "http://127.0.0.1:9";
  const agent = startSealflow(["agent", "--id", "a", "--sub", "me", "--server", url, "--", "cat"], {
    cwd,
  });
  await agent.until(/register failed: .*Trying again/);
  agent.send("SIGINT");
  expect(await agent.exited).toBe(0);
  expect(agent.stderr().trim().split("\n")).toHaveLength(1);
});

interface House {
  readonly server: Served;
  readonly cwd: string;
  /** A token. */
  readonly mine: string;
}

async function startHouse(): Promise<House> {
  const cwd = newDir();
  const server = await serve({ cwd });
  const mine = (await here(["token", "--sub", "me"], { cwd })).stdout.trim();
  return { server, cwd, mine };
}

function startAgent({ server, cwd }: Omit<House, "mine">, options: readonly string[]): Running {
  writeFileSync(join(cwd, "program.cjs"), program);
  const command = [process.execPath, "program.cjs"];
  const args = ["agent", "--sub", "me", "--server", server.url, ...options, "--", ...command];
  return startSealflow(args, { cwd });
}

function runOn(server: Served, token: string, input: unknown) {
  return server.call(token, "/agents/a/execute", { input, wait: 20, maxAttempts: 1 });
}

/** Begins a task on the agent `a`; resolves with its id once its program runs. */
async function startTask(
  { server, mine, agent }: { server: Served; mine: string; agent: Running },
  input: unknown,
): Promise<string> {
  await agent.until(/registered/);
  const { body } = await server.call(mine, "/agents/a/execute", { input, wait: 0 });
  // The program says why on stderr, which the agent passes on.
  await agent.until(/^why$/m);
  return body.executionId;
}
