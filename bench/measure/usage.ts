import { readFile } from "node:fs/promises";

/** What a process has used. */
export interface Usage {
  /** CPU time of all its threads since it began. */
  readonly cpuMs: number;
  /** Resident memory now. */
  readonly rssBytes: number;
}

/** The kernel counts CPU time in these for every reader of /proc (USER_HZ). */
const tickMs = 10;

/** Reads /proc, so on Linux only. Rejects when there is no such process. */
export async function usageOf(pid: number): Promise<Usage> {
  const [stat, status] = await Promise.all([
    readFile(`/proc/${pid}/stat`, "utf8"),
    readFile(`/proc/${pid}/status`, "utf8"),
  ]);
  // The name before it may hold spaces: counted from its closing parenthesis (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  const [, rssKiB] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
  return { cpuMs: ticks * tickMs, rssBytes: Number(rssKiB) * 1024 };
}
