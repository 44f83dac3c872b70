import type { MessageInitShape } from "@bufbuild/protobuf";
import type { WaitingSchema } from "../../gen/sealflow/v1/execution_pb.ts";
import type { Agent } from "../domain/agent.ts";
import { ServiceError } from "../domain/errors.ts";
import { agentOfRoute, capabilitiesOfRoute, type Execution, mayTake } from "../domain/execution.ts";
import { limits } from "../domain/limits.ts";
import type { QueueLine } from "../storage/port.ts";
import type { Call, ServiceParts } from "./call.ts";
import { type ExecutionNotes, toDuration, toTimestamp } from "./messages.ts";

/** An agent as one that might take what waits. */
interface Candidate {
  readonly agent: Agent;
  readonly isListening: boolean;
  readonly missing: readonly string[];
}

/** Whether an agent that may take from this line polls, polled lately or holds a lease. */
export async function isListening(
  { store, wakeups }: ServiceParts,
  line: QueueLine,
): Promise<boolean> {
  if (wakeups.polls.isListening(line)) return true;
  const holders = await store.agents.listHolders(line.owner);
  return holders.some(({ id, capabilities }) => mayTake(line.route, id, new Set(capabilities)));
}

/** Tells a person what to do about an execution that nobody will take. */
export function hintFor({ route }: QueueLine): string {
  const named = agentOfRoute(route);
  if (named !== "") {
    return `Agent ${named} is not listening. Start it: sealflow agent --id ${named} -- COMMAND`;
  }
  const names = capabilitiesOfRoute(route);
  if (names.length === 0) {
    return "No agent is listening. Start one: sealflow agent --id NAME -- COMMAND";
  }
  const flags = names.map((name) => `--capability ${name}`).join(" ");
  return (
    `No agent that has ${names.join(", ")} is listening. ` +
    `Start one: sealflow agent --id NAME ${flags} -- COMMAND`
  );
}

/** Why a queued execution waits, for people and for programs; nothing for any other. */
export async function explainWaiting(
  parts: ServiceParts,
  call: Call,
  { id, status }: Execution,
): Promise<Pick<ExecutionNotes, "hint" | "waiting">> {
  if (status !== "queued") return {};
  const line = await parts.store.executions.getLine(call.owner, id);
  if (line === null) return {};
  const candidates = await findCandidates(parts, call, line);
  const dueInUs = Math.max(0, line.dueUs - parts.clock.steadyUs());
  return {
    hint: hintOf(line, candidates, dueInUs),
    waiting: toWaiting(line, candidates, dueInUs),
  };
}

/** The agents that might take it, the likeliest first. */
async function findCandidates(
  parts: ServiceParts,
  call: Call,
  line: QueueLine,
): Promise<readonly Candidate[]> {
  const { agents } = parts.store;
  const holders = await agents.listHolders(line.owner);
  const heard = parts.wakeups.polls.listening(line.owner);
  const listening = new Set([...heard, ...holders.map(({ id }) => id)]);
  const named = agentOfRoute(line.route);
  const known = named === "" ? await knownAgents(parts, line.owner, heard) : [];
  if (named !== "") {
    const agent = await findAgent(parts, call.owner, named);
    // An id may have come to mean another agent since, or one that is no longer public.
    if (agent?.owner === line.owner) known.push(agent);
  }
  const required = named === "" ? capabilitiesOfRoute(line.route) : [];
  return known
    .map((agent) => {
      const has = new Set(agent.capabilities);
      const missing = required.filter((name) => !has.has(name));
      return { agent, isListening: listening.has(agent.id), missing };
    })
    .sort(byLikelihood);
}

/** Own agents: the newest, and those that listen. */
async function knownAgents(
  parts: ServiceParts,
  owner: string,
  heard: readonly string[],
): Promise<Agent[]> {
  const page = await parts.store.agents.listAgents(owner, { limit: limits.pageSizeMax });
  const newest = page.items.filter((agent) => agent.owner === owner);
  const ids = new Set(newest.map(({ id }) => id));
  const others = heard.filter((id) => !ids.has(id)).slice(0, limits.candidatesMax);
  const found = await Promise.all(others.map((id) => findAgent(parts, owner, id)));
  return [...newest, ...found.filter((agent) => agent !== undefined)];
}

async function findAgent(
  { store }: ServiceParts,
  owner: string,
  id: string,
): Promise<Agent | undefined> {
  try {
    return await store.agents.getAgent(owner, id);
  } catch (cause) {
    if (cause instanceof ServiceError && cause.reason === "AGENT_NOT_FOUND") return undefined;
    throw cause;
  }
}

function byLikelihood(a: Candidate, b: Candidate): number {
  return (
    a.missing.length - b.missing.length ||
    Number(b.isListening) - Number(a.isListening) ||
    b.agent.lastSeenUs - a.agent.lastSeenUs
  );
}

function hintOf(line: QueueLine, candidates: readonly Candidate[], dueInUs: number): string {
  const isHeard = candidates.some(
    ({ isListening, missing }) => isListening && missing.length === 0,
  );
  if (!isHeard) return [hintFor(line), lackOf(candidates)].filter((text) => text !== "").join(" ");
  return dueInUs === 0 ? "" : `The next attempt begins in ${Math.ceil(dueInUs / 1e6)} s.`;
}

/** What an agent that does listen would need. */
function lackOf(candidates: readonly Candidate[]): string {
  const nearest = candidates.find(({ isListening }) => isListening);
  if (nearest === undefined) return "";
  return `Agent ${nearest.agent.id} is listening, but lacks ${nearest.missing.join(", ")}.`;
}

function toWaiting(
  { route }: QueueLine,
  candidates: readonly Candidate[],
  dueInUs: number,
): MessageInitShape<typeof WaitingSchema> {
  return {
    dueIn: toDuration(dueInUs),
    requiredCapabilities: [...capabilitiesOfRoute(route)],
    agents: candidates.slice(0, limits.candidatesMax).map(({ agent, isListening, missing }) => ({
      agentId: agent.id,
      listening: isListening,
      lastSeenAt: toTimestamp(agent.lastSeenUs),
      missingCapabilities: [...missing],
    })),
    truncated: candidates.length > limits.candidatesMax,
  };
}
