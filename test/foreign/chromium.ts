import { spawn } from "node:child_process";
import { once } from "node:events";
import { makeFolder } from "../suites/open-store.ts";
import { chromiumPath } from "./debian.ts";

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Opens a page in a browser that has never run before, until disposed of. */
export async function openInChromium(url: string): Promise<AsyncDisposable> {
  const profile = await makeFolder();
  // In a process group of its own: it has children.
  const child = spawn(chromiumPath, [...flags, `--user-data-dir=${profile.path}`, url], {
    detached: true,
    stdio: "ignore",
  });
  const exit = once(child, "exit");
  return {
    async [Symbol.asyncDispose]() {
      const { pid } = child;
      if (pid !== undefined && child.exitCode === null) process.kill(-pid, "SIGKILL");
      await exit;
      await profile[Symbol.asyncDispose]();
    },
  };
}
