import { existsSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type AgentTask, TaskAbortedError, TaskFailedError } from "../src/client/agent.ts";
import { type CommandOptions, runCommand } from "../src/client/command-handler.ts";
import { isRunning } from "./cli/processes.ts";

const never = new AbortController().signal;

const task: AgentTask = {
  id: "ex_1",
  workflowId: "wf_1",
  attempt: 2,
  name: "Count words",
  input: { text: "to be" },
  payload: undefined,
  encryptedData: "b3BhcXVl",
  encryptionKey: "k",
  progress: undefined,
  timeLeftMs: 1000,
  heartbeat: async () => {},
};

function node(script: string): string[] {
  return [process.execPath, "-e", script];
}

async function run(
  command: readonly string[],
  options: CommandOptions = {},
  signal = never,
): Promise<unknown> {
  return runCommand(command, { onStderr: () => {}, ...options })(task, signal);
}

async function failureOf(running: Promise<unknown>): Promise<TaskFailedError> {
  const error: unknown = await running.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof TaskFailedError) return error;
  throw new Error("it did not fail as a task does", { cause: error });
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 20));
}

describe("what the command gets", () => {
  test("is the task as JSON on stdin", async () => {
    expect(await run(["cat"])).toEqual({
      id: "ex_1",
      workflowId: "wf_1",
      attempt: 2,
      name: "Count words",
      input: { text: "to be" },
      encryptedData: "b3BhcXVl",
      encryptionKey: "k",
    });
  });

  test("holds opened bytes as base64, and progress", async () => {
    const handler = runCommand(["cat"]);
    const opened = { ...task, payload: Uint8Array.of(1, 2, 255), progress: { step: 3 } };
    expect(await handler(opened, never)).toMatchObject({ payload: "AQL/", progress: { step: 3 } });
  });

  test("is the environment without what is Sealflow's", async () => {
    const env = { PATH: process.env.PATH, KEPT: "yes", SEALFLOW_TOKEN: "secret" };
    expect(await run(node("console.log(JSON.stringify(process.env))"), { env })).toMatchObject({
      KEPT: "yes",
    });
    const names = await run(node("console.log(Object.keys(process.env).join())"), { env });
    expect(names).not.toContain("SEALFLOW");
  });

  test("may be ignored, also when it is large", async () => {
    const handler = runCommand(["true"]);
    expect(await handler({ ...task, input: "x".repeat(1_000_000) }, never)).toEqual({});
  });
});

describe("what the command writes", () => {
  test.each([
    ['{"words":2}', { words: 2 }],
    ["[1,2]\n", [1, 2]],
    ["null", null],
    ["two words\n", "two words"],
    ["two\nlines\n\n", "two\nlines\n"],
    ["", {}],
  ])("%j is its output", async (stdout, output) => {
    expect(await run(["printf", "%s", stdout])).toEqual(output);
  });

  test("is refused above 1 MiB, and the command ended", async () => {
    const error = await failureOf(run(["yes"]));
    expect(error.failure).toMatchObject({ code: "OUTPUT_TOO_LARGE", retryable: false });
  });

  test("is taken at 1 MiB", async () => {
    const script = "process.stdout.write('x'.repeat(1024 * 1024))";
    expect(await run(node(script))).toHaveLength(1024 * 1024);
  });

  test("does not wait for what the command left running", async () => {
    const startedAtMs = performance.now();
    expect(await run(["sh", "-c", "sleep 6 & echo '{\"left\":true}'"])).toEqual({ left: true });
    expect(performance.now() - startedAtMs).toBeLessThan(5000);
  });
});

describe("a command that fails", () => {
  test("tells its exit code, and its stderr only when asked", async () => {
    const command = ["sh", "-c", "echo a hint >&2; exit 3"];
    const passedOn: Uint8Array[] = [];
    const quiet = await failureOf(run(command, { onStderr: (chunk) => passedOn.push(chunk) }));
    expect(Buffer.concat(passedOn).toString()).toBe("a hint\n");
    expect(quiet.failure.code).toBe("EXIT_3");
    expect(quiet.message).toContain("3");
    expect(quiet.message).not.toContain("hint");
    const loud = await failureOf(run(command, { reportStderr: true }));
    expect(loud.failure.code).toBe("EXIT_3");
    expect(loud.message).toContain("a hint");
  });

  test("tells the end of a long stderr, within 4 KiB", async () => {
    const script = "process.stderr.write('ü'.repeat(9000) + 'the end', () => process.exit(1))";
    const { message } = await failureOf(run(node(script), { reportStderr: true }));
    expect(message.endsWith("the end")).toBe(true);
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4096);
    expect(Buffer.byteLength(message)).toBeGreaterThan(3900);
    expect(message).not.toContain("\uFFFD");
  });

  test("tells the signal that ended it", async () => {
    const error = await failureOf(run(["sh", "-c", "kill -9 $$"]));
    expect(error.failure.code).toBe("SIGNAL_SIGKILL");
  });

  test("is not tried again when there is no such command", async () => {
    const missing = await failureOf(run(["/no/such/command"]));
    expect(missing.failure).toMatchObject({ code: "COMMAND_NOT_FOUND", retryable: false });
    const folder = await mkdtemp(join(tmpdir(), "sealflow-command-"));
    await writeFile(join(folder, "plain"), "text", { mode: 0o600 });
    const plain = await failureOf(run([join(folder, "plain")]));
    expect(plain.failure).toMatchObject({ code: "COMMAND_NOT_EXECUTABLE", retryable: false });
  });

  test("is refused before any task when it is empty", () => {
    expect(() => runCommand([])).toThrow(RangeError);
  });
});

describe("a task that is to stop", () => {
  test("ends the command and what it started", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sealflow-command-"));
    const pidFile = join(folder, "pid");
    const stop = new AbortController();
    const script = `sleep 60 & echo $! > ${pidFile}.part; mv ${pidFile}.part ${pidFile}; wait`;
    const running = run(["sh", "-c", script], {}, stop.signal);
    const settled = running.catch((reason: unknown) => reason);
    await until(() => existsSync(pidFile));
    stop.abort(new TaskAbortedError("lease_lost"));
    expect(await settled).toMatchObject({ why: "lease_lost" });
    const pid = Number(await readFile(pidFile, "utf8"));
    expect(pid).toBeGreaterThan(0);
    await until(() => !isRunning(pid));
  });

  test("may still end well", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sealflow-command-"));
    const ready = join(folder, "ready");
    const stop = new AbortController();
    const script = `trap 'echo saved; exit 0' TERM; touch ${ready}; while :; do sleep 0.05; done`;
    const running = run(["sh", "-c", script], {}, stop.signal);
    await until(() => existsSync(ready));
    stop.abort(new TaskAbortedError("cancel_requested"));
    expect(await running).toBe("saved");
  });

  test("is ended the hard way when it does not stop", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sealflow-command-"));
    const ready = join(folder, "ready");
    const stop = new AbortController();
    const script = `trap '' TERM; touch ${ready}; while :; do sleep 0.05; done`;
    const running = run(["sh", "-c", script], { killAfterMs: 300 }, stop.signal);
    const settled = running.catch((reason: unknown) => reason);
    await until(() => existsSync(ready));
    const stoppedAtMs = performance.now();
    stop.abort(new TaskAbortedError("draining"));
    expect(await settled).toMatchObject({ why: "draining" });
    expect(performance.now() - stoppedAtMs).toBeGreaterThan(290);
  });

  test("does not matter once the command has ended", async () => {
    const stop = new AbortController();
    expect(await run(["true"], {}, stop.signal)).toEqual({});
    stop.abort(new TaskAbortedError("draining"));
  });
});
