import { join } from "node:path";
import { issueToken, type TokenDraft } from "../../src/calls/auth/issuer.ts";
import { loadSigningKeys } from "../../src/calls/auth/signing-keys.ts";
import type { RateLimits } from "../../src/calls/rate-limits.ts";
import type { ServerConfig } from "../../src/config.ts";
import { type RunningServer, startServer, type World } from "../../src/server.ts";
import { makeFolder } from "../suites/open-store.ts";

/** The real server on free ports, with what a test needs to call it. */
export interface TestServer extends AsyncDisposable {
  readonly httpUrl: string;
  readonly grpcUrl: string;
  readonly dataDir: string;
  /** Every line it has logged. */
  readonly log: readonly string[];
  /** A token of the built-in issuer. */
  token(draft: Partial<TokenDraft> & { readonly sub: string }): Promise<string>;
  /** Stops it, and starts it again on the same data and other ports. */
  restart(): Promise<void>;
}

export const unlimited: RateLimits = {
  auth: null,
  sync: null,
  workflows: null,
  agents: null,
  executions: null,
  tasks: null,
};

export async function startTestServer(settings: Partial<ServerConfig> = {}): Promise<TestServer> {
  const folder = await makeFolder();
  const log: string[] = [];
  const start = () => startServer(testConfig(folder.path, settings), testWorld(log));
  let running: RunningServer = await start();
  return {
    get httpUrl() {
      return running.httpUrl;
    },
    get grpcUrl() {
      return `http://${running.grpcAddress}`;
    },
    dataDir: folder.path,
    log,
    token: (draft) => tokenOf(folder.path, draft),
    async restart() {
      await running[Symbol.asyncDispose]();
      running = await start();
    },
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** A token of the built-in issuer whose keys are in this directory. */
export async function tokenOf(
  dataDir: string,
  draft: Partial<TokenDraft> & { readonly sub: string },
): Promise<string> {
  const { active } = await loadSigningKeys(dataDir);
  const issued = await issueToken(active, { ttlSeconds: 3600, nowMs: Date.now(), ...draft });
  return issued.token;
}

/** What it has logged as its own fault. */
export function faultsOf({ log }: TestServer): string[] {
  return log.filter((line) => JSON.parse(line).level === "error");
}

/**
 * Free ports and no limits, unless the settings say otherwise. With SEALFLOW_GRPC_LANE=off every
 * test that does not choose for itself sees gRPC as the Connect adapter serves it.
 */
export function testConfig(dataDir: string, settings: Partial<ServerConfig> = {}): ServerConfig {
  return {
    host: "127.0.0.1",
    httpPort: 0,
    grpcPort: 0,
    dataDir,
    databasePath: join(dataDir, "sealflow.db"),
    rateLimits: unlimited,
    corsOrigins: [],
    trustedProxies: [],
    accessLog: false,
    grpcLane: process.env["SEALFLOW_GRPC_LANE"] !== "off",
    agentSilenceMs: 300_000,
    executionKeptMs: 30 * 86_400_000,
    ...settings,
  };
}

/** The real clocks and chance; what is logged is kept. */
export function testWorld(log: string[]): World {
  const bootUs = Date.now() * 1000;
  const bootMs = performance.now();
  return {
    clock: {
      wallUs: () => Date.now() * 1000,
      steadyUs: () => Math.floor(bootUs + (performance.now() - bootMs) * 1000),
    },
    random: Math.random,
    writeLog: (line: string) => {
      log.push(line);
    },
  };
}
