import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Debian's own Python: another one on the PATH does not have Debian's packages. */
export const pythonPath = "/usr/bin/python3";
export const chromiumPath = "/usr/bin/chromium";

const needs: Readonly<Record<string, () => Promise<unknown>>> = {
  curl: () => access("/usr/bin/curl"),
  "python3-grpcio": () => run(pythonPath, ["-c", "import grpc, google.protobuf"]),
  chromium: () => access(chromiumPath),
};

/** Fails before any test when a package is missing: a test that is skipped tells nothing. */
export async function setup(): Promise<void> {
  const missing: string[] = [];
  for (const [name, use] of Object.entries(needs)) {
    await use().catch(() => missing.push(name));
  }
  if (missing.length > 0) {
    throw new Error(`Debian's packages are missing: apt-get install ${missing.join(" ")}`);
  }
}
