import { randomBytes } from "node:crypto";
import { AgentService } from "../gen/sealflow/v1/agent_pb.ts";
import { SyncService } from "../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../gen/sealflow/v1/workflow_pb.ts";
import { createAuthenticator } from "./calls/auth/authenticate.ts";
import { createClientRegistry } from "./calls/auth/clients.ts";
import { openKeyRing } from "./calls/auth/key-ring.ts";
import { hasSigningKey } from "./calls/auth/signing-keys.ts";
import { createVerifier } from "./calls/auth/verifier.ts";
import { createIdentityWatch } from "./calls/auth/watch.ts";
import { createChain, service } from "./calls/chain.ts";
import { createLog, describeFault, type Log } from "./calls/log.ts";
import { RateCounters } from "./calls/rate-limits.ts";
import { createValidate } from "./calls/validate.ts";
import { Closers } from "./closers.ts";
import type { ServerConfig } from "./config.ts";
import type { Clock } from "./domain/clock.ts";
import { newId } from "./domain/new-id.ts";
import { createAddressOf } from "./doors/address.ts";
import { createConnectDoor } from "./doors/connect.ts";
import { createCors } from "./doors/cors.ts";
import { createGrpcLane } from "./doors/grpc/lane.ts";
import { createGrpcServer } from "./doors/grpc/server.ts";
import { createHttpServer } from "./doors/http.ts";
import { idleCloser } from "./doors/idle-connections.ts";
import { finish, listen } from "./doors/listening.ts";
import { createRestDoor } from "./doors/rest/door.ts";
import { createTokenDoor } from "./doors/rest/token-door.ts";
import { agentHandlers } from "./services/agent.ts";
import type { ServiceParts } from "./services/call.ts";
import { startHousekeeping } from "./services/housekeeping.ts";
import { PollLine } from "./services/poll-line.ts";
import { Presence } from "./services/presence.ts";
import { startSweeper } from "./services/sweeper.ts";
import { syncHandlers } from "./services/sync.ts";
import { Wakeups } from "./services/wakeups.ts";
import { workflowHandlers } from "./services/workflow.ts";
import type { Store } from "./storage/port.ts";
import { loadServerKey } from "./storage/server-key.ts";
import { readKeyCheck } from "./storage/sqlite/file/identity.ts";
import { openSqliteStore } from "./storage/sqlite/open.ts";

/** What a server takes from the world; a test gives its own. */
export interface World {
  readonly clock: Clock;
  random(): number;
  writeLog(line: string): void;
}

/** A server that serves, until it is disposed of. */
export interface RunningServer extends AsyncDisposable {
  readonly httpUrl: string;
  /** `host:port` */
  readonly grpcAddress: string;
  /** The keys that there were none of, so that this start has made them. */
  readonly madeKeys: readonly ("signing key" | "server key")[];
  /** Resolves when the store has failed for good, which is in the log: it serves no more writes. */
  readonly failed: Promise<void>;
}

/** By address, a minute: asking for tokens, and sending ones whose signature is refused. */
const tokenCallsByAddress = 60;
const forgeriesByAddress = 600;

/** Builds everything by hand, starts it, and disposes of it in the reverse order. */
export async function startServer(config: ServerConfig, world: World): Promise<RunningServer> {
  const closers = new Closers();
  try {
    return await open(config, world, closers);
  } catch (cause) {
    await closers.close();
    throw cause;
  }
}

async function open(config: ServerConfig, world: World, closers: Closers): Promise<RunningServer> {
  const log = createLog(world.writeLog, () => new Date(world.clock.wallUs() / 1000));
  const onFailure = (cause: unknown) =>
    log("error", "background work failed", { fault: describeFault(cause) });
  const hadSigningKey = await hasSigningKey(config.dataDir);
  const { store, madeServerKey } = await openStore(config, world.clock);
  closers.use(store);
  const stopping = new AbortController();

  const wakeups = new Wakeups(new PollLine(world.clock));
  const services: ServiceParts = {
    store,
    wakeups,
    clock: world.clock,
    newId: (prefix) => newId(prefix, world.clock.wallUs(), randomBytes(16)),
    random: world.random,
    stopping: stopping.signal,
  };
  const presence = new Presence({
    agents: store.agents,
    wakeups,
    clock: world.clock,
    silenceUs: config.agentSilenceMs * 1000,
    onFailure,
  });
  await store.tasks.restoreLeases();
  closers.use(startSweeper(services, onFailure));
  closers.use(startHousekeeping({ store, presence, stopping: stopping.signal, onFailure }));

  const calls = { config, world, log, services, presence, onFailure };
  const doors = await openDoors(calls, closers);
  const http = createHttpServer(doors);
  const closeIdle = idleCloser(http);
  const grpc = createGrpcServer(doors.connect, doors.lane);
  closers.defer(() => {
    http.closeAllConnections();
    grpc.destroy();
  });
  closers.defer(async () => {
    stopping.abort();
    grpc.goAway();
    // A connection whose last answer has gone out is idle only then, and nothing tells of it.
    const letGo = setInterval(closeIdle, 50);
    await finish([http, grpc.server]);
    clearInterval(letGo);
  });
  const { host } = config;
  const at = { host, onFailure };
  const httpPort = await listen(http, { ...at, port: config.httpPort, flag: "http-port" });
  const grpcPort = await listen(grpc.server, { ...at, port: config.grpcPort, flag: "grpc-port" });

  return {
    httpUrl: `http://${hostText(config.host)}:${httpPort}`,
    grpcAddress: `${hostText(config.host)}:${grpcPort}`,
    madeKeys: [
      ...(hadSigningKey ? [] : (["signing key"] as const)),
      ...(madeServerKey ? (["server key"] as const) : []),
    ],
    failed: store.failed.then((cause) => {
      log("error", "the store has failed", { fault: describeFault(cause) });
    }),
    [Symbol.asyncDispose]: () => closers.close(),
  };
}

async function openStore(
  config: ServerConfig,
  clock: Clock,
): Promise<{ readonly store: Store; readonly madeServerKey: boolean }> {
  const path = config.databasePath;
  const { key, created } = loadServerKey({
    dataDir: config.dataDir,
    ...(config.masterKey === undefined ? {} : { fromSetting: config.masterKey }),
    hasKeyCheck: readKeyCheck(path) !== null,
  });
  const executionKeptUs = config.executionKeptMs * 1000;
  const store = await openSqliteStore({ path, masterKey: key, clock, executionKeptUs });
  return { store, madeServerKey: created };
}

interface CallParts {
  readonly config: ServerConfig;
  readonly world: World;
  readonly log: Log;
  readonly services: ServiceParts;
  readonly presence: Presence;
  onFailure(cause: unknown): void;
}

/** The chain, and the doors that lead to it. */
async function openDoors(
  { config, world, log, services, presence, onFailure }: CallParts,
  closers: Closers,
) {
  const nowMs = () => Math.floor(world.clock.wallUs() / 1000);
  const keys = closers.use(await openKeyRing(config.dataDir, { nowMs, onFailure }));
  const clients = closers.use(await createClientRegistry(services.store.clients, { onFailure }));
  const { sharedSecret } = config;
  const verifier = closers.use(createVerifier({ keys, clients, nowMs, sharedSecret }));
  const watch = closers.use(createIdentityWatch({ verifier, nowMs }));
  const newRequestId = requestIds();
  const chain = createChain({
    services: [
      service(WorkflowService, workflowHandlers(services)),
      service(AgentService, agentHandlers(services)),
      service(SyncService, syncHandlers(services)),
    ],
    authenticate: createAuthenticator({ verifier }),
    rates: new RateCounters(config.rateLimits),
    forgeries: new RateCounters({ ...config.rateLimits, auth: forgeriesByAddress }),
    validate: createValidate(),
    log,
    logSuccesses: config.accessLog,
    seen: (owner, agentId) => presence.seen(owner, agentId),
    onTokenEnd: ({ identity }, tell) => watch.watch(identity, tell),
    newRequestId,
    stopping: services.stopping,
  });
  const addressOf = createAddressOf(config.trustedProxies);
  const faults = { log, newRequestId };
  const rpcs = { faults, chain, services: [WorkflowService, AgentService, SyncService], addressOf };
  return {
    cors: createCors(config.corsOrigins),
    faults,
    connect: createConnectDoor(rpcs),
    lane: config.grpcLane ? createGrpcLane(rpcs) : null,
    rest: createRestDoor({ ...faults, chain, addressOf }),
    token: createTokenDoor({
      clients,
      keys,
      nowMs,
      clientRates: new RateCounters(config.rateLimits),
      addressRates: new RateCounters({ ...config.rateLimits, auth: tokenCallsByAddress }),
      log,
      newRequestId,
      addressOf,
    }),
  };
}

/** Unique over restarts, and cheap: one draw a process, then a count. */
function requestIds(): () => string {
  const process = randomBytes(6).toString("hex");
  let count = 0;
  return () => {
    count += 1;
    return `${process}-${count.toString(36)}`;
  };
}

function hostText(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
