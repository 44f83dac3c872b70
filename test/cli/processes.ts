import { readFileSync } from "node:fs";

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
