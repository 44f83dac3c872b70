import { ownMain, ServerProcess } from "../chaos/server-process.ts";
import { makeFolder } from "../suites/open-store.ts";
import { type TestServer, tokenOf } from "./server.ts";

/** The real server in a process of its own, with fresh data and without rate limits. */
export interface KillableServer
  extends AsyncDisposable,
    Pick<TestServer, "httpUrl" | "grpcUrl" | "dataDir" | "token">,
    Pick<ServerProcess, "faults" | "stepClock"> {
  /** As a power cut would, without a word. */
  kill(): Promise<void>;
  /** After a kill: starts it again on the same data and ports. */
  start(): Promise<void>;
}

export async function startKillableServer(): Promise<KillableServer> {
  const folder = await makeFolder();
  const server = new ServerProcess({ main: ownMain, dataDir: folder.path, speed: 1 });
  await server.start();
  return {
    httpUrl: server.httpUrl,
    grpcUrl: server.grpcUrl,
    dataDir: folder.path,
    faults: server.faults,
    token: (draft) => tokenOf(folder.path, draft),
    kill: () => server.kill(),
    start: () => server.start(),
    stepClock: (stepMs) => server.stepClock(stepMs),
    async [Symbol.asyncDispose]() {
      await server.kill();
      await folder[Symbol.asyncDispose]();
    },
  };
}
