import { availableParallelism, cpus, loadavg, release, totalmem, type } from "node:os";

/** Where and when it was measured: figures of two machines, or of a busy one, do not compare. */
export interface Machine {
  readonly time: string;
  readonly node: string;
  readonly system: string;
  readonly processor: string;
  readonly processors: number;
  readonly memoryBytes: number;
  /** Processes that ran or wanted to, over the minute before the first measurement. */
  readonly loadBefore: number;
}

/** Above this load for each processor, others had their share of the machine. */
const busyLoad = 0.3;

export function thisMachine(): Machine {
  return {
    time: new Date().toISOString(),
    node: process.versions.node,
    system: `${type()} ${release()}`,
    processor: cpus()[0]?.model.trim() ?? "unknown",
    processors: availableParallelism(),
    memoryBytes: totalmem(),
    loadBefore: loadavg()[0] ?? 0,
  };
}

export function machineText(machine: Machine): string {
  const { loadBefore, processors } = machine;
  const isBusy = loadBefore / processors > busyLoad;
  const lines = [
    `${machine.time}  Node ${machine.node}  ${machine.system}`,
    `${processors} x ${machine.processor}, ${Math.round(machine.memoryBytes / 2 ** 30)} GiB`,
    `load of the last minute: ${loadBefore.toFixed(2)}${
      isBusy ? "  BUSY: other work shares this machine; trust ratios, not absolutes" : ""
    }`,
  ];
  return `${lines.join("\n")}\n`;
}
