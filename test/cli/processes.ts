import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";

const isLinux = process.platform === "linux";

/** Whether the process runs. One that has ended may stay as a zombie where nobody collects it. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch (error) {
    // Elsewhere than on Linux there is no such file, and whoever can be signalled runs.
    return error instanceof Error && "code" in error && error.code === "ENOENT" && !isLinux;
  }
}

/**
 * Starts a program that ends, with all of its process group, when the test does. It shares no pipe with the test's own
 * process: a runner that waits until everyone has closed those would wait for whatever the program left behind.
 */
export function startForTest(
  program: string,
  args: readonly string[],
  how: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): ChildProcessByStdio<null, Readable, Readable> {
  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
  const child = spawn(program, args, { ...how, detached: true, stdio });
  child.stderr.on("data", (chunk: Buffer) => process.stderr.write(chunk));
  onTestFinished(() => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All have ended.
    }
  });
  return child;
}
