import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueToken } from "../../src/calls/auth/issuer.ts";
import { loadSigningKeys } from "../../src/calls/auth/signing-keys.ts";
import { playAgent } from "./agent.ts";
import { Caller, openDoors } from "./caller.ts";
import { findViolations } from "./checks.ts";
import { playClient } from "./client.ts";
import { type History, hasEnded, newHistory } from "./history.ts";
import { Random } from "./random.ts";
import { ownMain, ServerProcess } from "./server-process.ts";
import { UnreliableProxy } from "./unreliable-proxy.ts";

export interface PlayOptions {
  readonly seed: number;
  /** How long the faults go on, in real seconds. */
  readonly seconds: number;
  /** How many service seconds pass in a real one. */
  readonly speed: number;
  /** Which faults there are; all when absent. */
  readonly faults?: readonly Fault[];
  /** How many clients there are, and as many agents. */
  readonly callers?: number;
  /** The server's main.ts; the checkout's own when absent. */
  readonly main?: string;
}

/** `wire`: what the proxy does. The others befall the server itself. */
export const faultNames = ["kill", "stop", "step", "wire"] as const;
export type Fault = (typeof faultNames)[number];

export interface Played {
  readonly seed: number;
  readonly violations: readonly string[];
  /** What happened how often. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Beyond any time-out that a client asks for, with all attempts. */
const endSecondsMax = 200;
const hourMs = 3_600_000;

/** Plays one history against a server of its own, and checks what its callers saw. */
export async function play(options: PlayOptions): Promise<Played> {
  const { seed, seconds, speed, faults = faultNames, callers = 4, main = ownMain } = options;
  const random = new Random(seed);
  const dataDir = await mkdtemp(join(tmpdir(), "sealflow-chaos-"));
  const server = new ServerProcess({ main, dataDir, speed });
  const delayMsMax = 3_000 / speed;
  const proxy = new UnreliableProxy({
    target: () => server.httpUrl,
    random: random.fork(),
    delayMsMax,
  });
  const history = newHistory();
  try {
    await Promise.all([server.start(), proxy.listen()]);
    proxy.isHonest = !faults.includes("wire");
    const stage = { server, proxy, random, history, dataDir, seconds, speed, faults, callers };
    const deeds = await playAll(stage);
    history.faults.push(...server.faults);
    const violations = findViolations(history, {
      speed,
      outages: server.outages,
      isClockStepped: deeds.step > 0,
    });
    return { seed, violations, counts: { ...countsOf(history), ...deeds, ...proxy.counts } };
  } finally {
    proxy.close();
    await server.kill();
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface Stage {
  readonly server: ServerProcess;
  readonly proxy: UnreliableProxy;
  readonly random: Random;
  readonly history: History;
  readonly dataDir: string;
  readonly seconds: number;
  readonly speed: number;
  readonly faults: readonly Fault[];
  readonly callers: number;
}

/** Clients, agents and faults for a while; then agents alone, honest, until all has ended. */
async function playAll(stage: Stage): Promise<Deeds> {
  const { server, proxy, random, history, speed } = stage;
  const token = await tokenOf(stage.dataDir);
  const [wishing, working] = [new AbortController(), new AbortController()];
  const doors = openDoors(proxy.url, server.grpcUrl);
  const caller = (agentId: string, { signal }: AbortController) =>
    new Caller({
      ...{ history, speed, doors, stopped: signal },
      random: random.fork(),
      who: { token, agentId },
    });

  const working_ = Array.from({ length: stage.callers }, (_, n) =>
    playAgent(caller(`agent-${n}`, working), `agent-${n}`, () => wishing.signal.aborted),
  );
  const wishing_ = Array.from({ length: stage.callers }, (_, n) =>
    playClient(caller(`client-${n}`, wishing)),
  );
  const deeds = await disturb(stage);
  proxy.isHonest = true;
  wishing.abort();
  await Promise.all(wishing_);
  const reader = caller("reader", working);
  await awaitEnds(reader);
  working.abort();
  await Promise.all(working_);
  await readWorkflows(reader);
  return deeds;
}

type Deeds = Record<Exclude<Fault, "wire">, number>;

/** The faults of the server itself; those on the way are the proxy's. */
async function disturb({ server, random: all, seconds, speed, faults }: Stage): Promise<Deeds> {
  const random = all.fork();
  const deeds: Deeds = { kill: 0, stop: 0, step: 0 };
  const weight = (fault: Fault, often: number) => (faults.includes(fault) ? often : 0);
  const weights = { kill: weight("kill", 4), stop: weight("stop", 2), step: weight("step", 1) };
  const endMs = performance.now() + seconds * 1000;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, random.between(300, 1500)));
    if (performance.now() >= endMs) break;
    if (faults.every((fault) => fault === "wire")) continue;
    const deed = random.choose(weights);
    deeds[deed] += 1;
    if (deed === "kill") await server.killAndRestart();
    if (deed === "stop") await server.pause(random.between(500, 8_000) / speed);
    if (deed === "step") server.stepClock((random.pick([-1, 1, 0]) ?? 0) * hourMs);
  }
  return deeds;
}

/** Reads every execution until it has ended; what has not by the end stays as it is. */
async function awaitEnds(reader: Caller): Promise<void> {
  const { final, accepted } = reader.history;
  const endMs = performance.now() + (endSecondsMax * 1000) / reader.speed;
  let open = new Set(accepted.map(({ executionId }) => executionId));
  while (open.size > 0 && performance.now() < endMs) {
    for (const id of open) {
      const look = await reader.look(id);
      if (look !== undefined) final.set(id, look);
    }
    open = new Set([...open].filter((id) => !isOver(final.get(id))));
    if (open.size > 0) await reader.pause(1);
  }
}

function isOver(look: ReturnType<History["final"]["get"]>): boolean {
  return look === "missing" || (look !== undefined && hasEnded(look.status));
}

async function readWorkflows(reader: Caller): Promise<void> {
  const { tried, workflows } = reader.history;
  for (const id of new Set(tried.map(({ workflowId }) => workflowId))) {
    const workflow = await reader.once("getWorkflow", { id });
    const list = await reader.once("listExecutions", { workflowId: id, limit: 1 });
    const [read, listed] = [workflow.outcome, list.outcome];
    if (read === "unknown" || listed === "unknown" || !("ok" in read) || !("ok" in listed)) {
      reader.history.faults.push(`workflow ${id} cannot be read`);
    } else {
      const total = Number(listed.ok["total"] ?? 0);
      workflows.set(id, { total, status: String(read.ok["status"]) });
    }
  }
}

/** Made long ago and good for long, so that no stepped clock refuses it. */
async function tokenOf(dataDir: string): Promise<string> {
  const { active } = await loadSigningKeys(dataDir);
  const nowMs = Date.now() - 2 * hourMs;
  const draft = { sub: randomUUID(), ttlSeconds: 30 * 24 * 3600, nowMs };
  return (await issueToken(active, draft)).token;
}

function countsOf({ accepted, granted, reported, cancels, final }: History) {
  const ends = Map.groupBy(final.values(), (end) => (end === "missing" ? end : end.status));
  return {
    executions: new Set(accepted.map(({ executionId }) => executionId)).size,
    grants: new Set(granted.map(({ token }) => token)).size,
    reports: reported.length,
    refused: reported.filter(({ answer }) => answer === "LEASE_LOST").length,
    cancels: cancels.length,
    ...Object.fromEntries([...ends].map(([status, all]) => [status, all.length])),
  };
}
