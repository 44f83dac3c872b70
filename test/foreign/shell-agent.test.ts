import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { startForTest } from "../cli/processes.ts";
import { newDir, type Served, sealflow, serve } from "../cli/program.ts";

/** The agent of docs/agents.md, as it stands there. */
function script(): string {
  const page = readFileSync(new URL("../../docs/agents.md", import.meta.url), "utf8");
  const [, text] = /```sh\n(#!\/bin\/sh\n.*?)```/s.exec(page) ?? [];
  if (text === undefined) throw new Error("docs/agents.md has no script");
  return text;
}

interface Stage {
  readonly server: Served;
  readonly token: string;
  /** What the agent itself printed, which is nothing while all is well. */
  readonly printed: () => string;
  /** As the kernel does when memory is short: the shell alone, at once. */
  kill(): void;
  /** Executes and waits for the end; the execution. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server says
  execute(body?: object): Promise<any>;
}

/** A server, and the agent beside it, which runs `command`. */
async function stage(
  command: string,
  env: Record<string, string> = {},
  through: (url: string) => Promise<string> = async (url) => url,
): Promise<Stage> {
  const cwd = newDir();
  const server = await serve({ cwd }, ["--rate-limits", "executions=off,workflows=off"]);
  const { stdout } = await sealflow(["token", "--sub", "me"], { cwd });
  const token = stdout.trim();
  const path = join(cwd, "agent.sh");
  writeFileSync(path, script());
  const agent = startForTest("/bin/sh", [path], {
    cwd,
    env: {
      ...{ PATH: process.env["PATH"], TMPDIR: cwd, TOKEN: token, COMMAND: command },
      ...{ API: `${await through(server.url)}/api/v1`, ...env },
    },
  });
  let printed = "";
  for (const stream of [agent.stdout, agent.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
    });
  }
  const { body } = await server.call(token, "/workflows", { name: "w" });
  return {
    server,
    token,
    printed: () => printed,
    kill: () => void agent.kill("SIGKILL"),
    async execute(request = {}) {
      const path = `/workflows/${body.id}/execute`;
      return (await server.call(token, path, { wait: 50, ...request })).body;
    },
  };
}

test("it answers what its command prints, one task after another", async () => {
  const { execute, printed } = await stage(`sed 's/.*"input":\\({[^}]*}\\).*/\\1/'`);
  for (const word of ["to", "be"]) {
    const done = await execute({ input: { word, leaseToken: "not this one" } });
    expect(done).toMatchObject({
      status: "completed",
      output: { word, leaseToken: "not this one" },
      agentId: "shell",
    });
  }
  expect(printed()).toBe("");
});

test("a command that fails is tried again", async () => {
  const { execute } = await stage(`grep -q '"attempt":2' || exit 7; echo '"second"'`);
  expect(await execute()).toMatchObject({ status: "completed", output: "second", attempt: 2 });
  const failed = await execute({ maxAttempts: 1 });
  expect(failed).toMatchObject({ status: "failed", error: { code: "EXIT_7" }, attempt: 1 });
});

test("a command outlives its lease, for the agent heartbeats", async () => {
  const { execute } = await stage("sleep 9; echo '\"late\"'", { LEASE: "5" });
  expect(await execute()).toMatchObject({ status: "completed", output: "late", attempt: 1 });
});

test("a cancel kills its command, and what that started", async () => {
  const marker = `98765.${process.pid}`;
  const { server, token, execute } = await stage(`sleep ${marker}; echo 1`);
  const { executionId } = await execute({ wait: 0 });
  const read = async () => (await server.call(token, `/executions/${executionId}`)).body.status;
  const sleeps = () => isRunning(`sleep ${marker}`);
  await expect.poll(read, { timeout: 10_000 }).toBe("running");
  await expect.poll(sleeps, { timeout: 10_000 }).toBe(true);
  await server.call(token, `/executions/${executionId}/cancel`, {});
  await expect.poll(read, { timeout: 9_000 }).toBe("cancelled");
  await expect.poll(sleeps, { timeout: 5_000 }).toBe(false);
  // And it goes on.
  const next = await execute({ wait: 0 });
  await expect.poll(sleeps, { timeout: 10_000 }).toBe(true);
  await server.call(token, `/executions/${next.executionId}/cancel`, {});
  await expect.poll(sleeps, { timeout: 10_000 }).toBe(false);
});

test("when it is killed, nothing keeps its lease, and its command ends too", async () => {
  const marker = `87654.${process.pid}`;
  const { server, token, execute, kill } = await stage(`sleep ${marker}`, { LEASE: "5" });
  const { executionId } = await execute({ wait: 0 });
  const sleeps = () => isRunning(`sleep ${marker}`);
  await expect.poll(sleeps, { timeout: 10_000 }).toBe(true);
  kill();
  const read = async () => (await server.call(token, `/executions/${executionId}`)).body.status;
  await expect.poll(read, { timeout: 18_000 }).toBe("pending");
  await expect.poll(sleeps, { timeout: 5_000 }).toBe(false);
});

test("every second call is refused at first, and nothing comes of it", async () => {
  const { execute } = await stage("sleep 7; echo '\"done\"'", {}, refusingEverySecond);
  expect(await execute()).toMatchObject({ status: "completed", output: "done", attempt: 1 });
});

/** A proxy that is too busy for every second call; its address. */
async function refusingEverySecond(url: string): Promise<string> {
  let calls = 0;
  const proxy = createServer(async (request, response) => {
    calls += 1;
    const body = await text(request);
    if (calls % 2 === 1) {
      response.writeHead(503, { "content-type": "application/json" });
      response.end('{"success":false,"error":{"code":"UNAVAILABLE","message":"Busy"}}');
      return;
    }
    const { authorization = "" } = request.headers;
    const headers = {
      ...{ authorization, "content-type": "application/json" },
      "x-agent-id": String(request.headers["x-agent-id"]),
    };
    const answer = await fetch(`${url}${request.url}`, { method: "POST", headers, body });
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(await answer.text());
  });
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

/** Whether a process was started as this. */
function isRunning(command: string): boolean {
  return readdirSync("/proc").some((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return line.split("\0").join(" ").trim() === command;
    } catch {
      return false;
    }
  });
}
