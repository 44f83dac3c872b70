import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { type AgentTask, TaskFailedError, type TaskHandler } from "./agent-task.ts";

/** How a command is run. */
export interface CommandOptions {
  /** Whether a failure tells the owner the end of stderr. Default false: the exit code only. */
  readonly reportStderr?: boolean;
  /** What the command inherits, save `SEALFLOW_*`. Default `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
  /** Takes what the command writes to stderr. Default: the agent's own stderr. */
  readonly onStderr?: (chunk: Uint8Array) => void;
  /** How long the command has between SIGTERM and SIGKILL. Default 5 s. */
  readonly killAfterMs?: number;
  /** Aborted to kill every command at once, before the abort returns. */
  readonly killed?: AbortSignal;
}

const outputBytesMax = 1024 * 1024;
/** 4 KiB less the sentence before it: the whole message may have 4 KiB. */
const stderrBytesMax = 4096 - 96;
const killAfterDefaultMs = 5000;
/** How long the output of a command that has exited may stay open: a child of it may hold it. */
const openOutputMs = 1000;

/**
 * A handler that runs a command for each task, in a process group of its own, with the task as JSON
 * on stdin (bytes as base64). Its stdout is the output: a value of JSON, or else text without its
 * last newline; empty is `{}`. Fails with `EXIT_<n>`, `SIGNAL_<name>`, `OUTPUT_TOO_LARGE` (1 MiB),
 * `COMMAND_NOT_FOUND`, `COMMAND_NOT_EXECUTABLE` or `COMMAND_NOT_STARTED`. When the task is to stop,
 * the group gets SIGTERM, and later SIGKILL.
 * @throws RangeError when the command is empty
 */
export function runCommand(command: readonly string[], options: CommandOptions = {}): TaskHandler {
  const [file, ...args] = command;
  if (file === undefined || file === "") throw new RangeError("The command is empty");
  const { reportStderr = false, onStderr = (chunk) => process.stderr.write(chunk) } = options;
  return async (task, signal) => {
    const child = start(file, args, commandEnv(options.env ?? process.env));
    const collected = collect(child, onStderr);
    const finishStopping = stopOn(signal, child, options.killAfterMs ?? killAfterDefaultMs);
    const kill = () => killGroup(child, "SIGKILL");
    options.killed?.addEventListener("abort", kill);
    sendTask(child, task);
    try {
      const end = await collected;
      if (end.code === 0 && !end.isTooLarge) return parseOutput(end.stdout);
      signal.throwIfAborted();
      throw failure(end, reportStderr);
    } finally {
      options.killed?.removeEventListener("abort", kill);
      finishStopping();
    }
  };
}

function commandEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("SEALFLOW_")));
}

function start(
  file: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): ChildProcessWithoutNullStreams {
  try {
    // A group of its own: stopped as a whole, and no Ctrl-C of the agent's terminal reaches it.
    return spawn(file, args, { env, detached: true, stdio: "pipe" });
  } catch (error) {
    throw notStarted(error);
  }
}

function sendTask(child: ChildProcessWithoutNullStreams, task: AgentTask): void {
  const { id, workflowId, attempt, name, input, encryptedData, encryptionKey } = task;
  const { payload, progress } = task;
  const text = JSON.stringify(
    { id, workflowId, attempt, name, input, encryptedData, encryptionKey, payload, progress },
    (_key, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );
  // A command need not read its task: closing stdin early is its right (EPIPE).
  child.stdin.on("error", () => {});
  child.stdin.end(text);
}

interface CommandEnd {
  readonly code: number | null;
  readonly signalName: NodeJS.Signals | null;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly isTooLarge: boolean;
}

function collect(
  child: ChildProcessWithoutNullStreams,
  onStderr: (chunk: Uint8Array) => void,
): Promise<CommandEnd> {
  const stdout: Buffer[] = [];
  let stdoutBytes = 0;
  let stderr = Buffer.alloc(0);
  child.stdout.on("data", (chunk: Buffer) => {
    stdoutBytes += chunk.byteLength;
    if (stdoutBytes <= outputBytesMax) stdout.push(chunk);
    else killGroup(child, "SIGKILL");
  });
  child.stderr.on("data", (chunk: Buffer) => {
    onStderr(chunk);
    stderr = Buffer.concat([stderr, chunk]).subarray(-stderrBytesMax);
  });
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    child.once("error", (error) => reject(notStarted(error)));
    child.once("exit", () => {
      timer = setTimeout(closeOutput, openOutputMs, child);
    });
    child.once("close", (code, signalName) => {
      clearTimeout(timer);
      const isTooLarge = stdoutBytes > outputBytesMax;
      resolve({ code, signalName, stdout: Buffer.concat(stdout), stderr, isTooLarge });
    });
  });
}

function closeOutput(child: ChildProcessWithoutNullStreams): void {
  child.stdout.destroy();
  child.stderr.destroy();
}

/** Stops the command when the signal says so. The function returned ends that, and the group. */
function stopOn(
  signal: AbortSignal,
  child: ChildProcessWithoutNullStreams,
  killAfterMs: number,
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    killGroup(child, "SIGTERM");
    timer = setTimeout(() => killGroup(child, "SIGKILL"), killAfterMs);
  };
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  return () => {
    signal.removeEventListener("abort", stop);
    if (timer === undefined) return;
    clearTimeout(timer);
    // What the command started and left behind must not outlive a task that was stopped.
    killGroup(child, "SIGKILL");
  };
}

function killGroup({ pid }: ChildProcessWithoutNullStreams, signalName: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === "win32" ? pid : -pid, signalName);
  } catch {
    // Nobody is left in the group.
  }
}

function parseOutput(stdout: Buffer): unknown {
  if (stdout.byteLength === 0) return {};
  const text = stdout.toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text.replace(/\r?\n$/, "");
  }
}

function failure(end: CommandEnd, reportStderr: boolean): TaskFailedError {
  if (end.isTooLarge) {
    return new TaskFailedError("The command wrote more than 1 MiB", {
      code: "OUTPUT_TOO_LARGE",
      retryable: false,
    });
  }
  const sentence =
    end.signalName === null
      ? `The command exited with code ${end.code}`
      : `The command was ended by ${end.signalName}`;
  const code = end.signalName === null ? `EXIT_${end.code}` : `SIGNAL_${end.signalName}`;
  // The first character may have been cut.
  const stderr = end.stderr
    .toString("utf8")
    .replace(/^\uFFFD+/, "")
    .trimEnd();
  const isShown = reportStderr && stderr !== "";
  return new TaskFailedError(isShown ? `${sentence}\n${stderr}` : sentence, { code });
}

const startFailures: Readonly<Record<string, string>> = {
  ENOENT: "COMMAND_NOT_FOUND",
  EACCES: "COMMAND_NOT_EXECUTABLE",
};

function notStarted(error: unknown): TaskFailedError {
  const errno = error instanceof Error && "code" in error ? String(error.code) : "";
  const code = startFailures[errno];
  return new TaskFailedError(`The command could not be started ${errno}`.trimEnd(), {
    code: code ?? "COMMAND_NOT_STARTED",
    // Others may be for want of memory or processes, which passes.
    retryable: code === undefined,
    cause: error,
  });
}
