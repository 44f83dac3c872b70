import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { RunningServer } from "../server.ts";
import { holderPath } from "../storage/sqlite/file/lock.ts";

/** Writes who holds the database, for the refusal of a second server, until disposed of. */
export function announceHolder(
  databasePath: string,
  { httpUrl, grpcAddress }: RunningServer,
): Disposable {
  const path = holderPath(databasePath);
  const text = `pid ${process.pid}, ${httpUrl}, gRPC ${grpcAddress}`;
  writeFileSync(path, `${text}\n`, { mode: 0o600 });
  return {
    [Symbol.dispose]() {
      // The lock has gone before this: the next server may have written its own by now.
      if (existsSync(path) && readFileSync(path, "utf8").trim() === text) rmSync(path);
    },
  };
}
