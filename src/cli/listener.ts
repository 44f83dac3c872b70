import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Of a line of /proc/net/tcp: the local port in hex, and the inode of the socket that listens. */
const listening = /^\s*\d+: [\dA-F]+:([\dA-F]{4}) [\dA-F]+:[\dA-F]{4} 0A (?:\S+ +){5}(\d+)/;

/**
 * The process that listens on a TCP port, e.g. `node (pid 4711)`. Undefined when it cannot be told:
 * another system than Linux, or another user's process.
 */
export function listenerOf(port: number): string | undefined {
  const sockets = new Set(["tcp", "tcp6"].flatMap((table) => socketsOn(port, table)));
  if (sockets.size === 0) return undefined;
  const pid = attempt(() => readdirSync("/proc"), [])
    .filter((name) => /^\d+$/.test(name))
    .find((name) => descriptorsOf(name).some((target) => sockets.has(target)));
  if (pid === undefined) return undefined;
  const name = attempt(() => readFileSync(`/proc/${pid}/comm`, "utf8").trim(), "a process");
  return `${name} (pid ${pid})`;
}

function socketsOn(port: number, table: string): readonly string[] {
  const lines = attempt(() => readFileSync(`/proc/net/${table}`, "utf8"), "").split("\n");
  return lines.flatMap((line) => {
    const [, hex, inode] = listening.exec(line) ?? [];
    return Number.parseInt(hex ?? "", 16) === port ? [`socket:[${inode}]`] : [];
  });
}

function descriptorsOf(pid: string): readonly string[] {
  const dir = `/proc/${pid}/fd`;
  const names = attempt(() => readdirSync(dir), []);
  return names.map((name) => attempt(() => readlinkSync(`${dir}/${name}`), ""));
}

/** Files of /proc come and go, and some are not for us. */
function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
