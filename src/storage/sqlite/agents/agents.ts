import type { AgentName } from "../../../domain/agent.ts";
import { agentNotFound } from "../../../domain/errors.ts";
import type { AgentStore } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import { Touches } from "../ledger.ts";
import { createAgentEdits } from "./agent-edits.ts";
import type { AgentNames } from "./agent-names.ts";
import { readAgentPage } from "./agent-page.ts";
import { type AgentRow, createAgentRows, toAgent } from "./agent-rows.ts";

/** What agents need of the other parts; all of it works inside a write. */
export interface AgentNeeds {
  readonly names: AgentNames;
  /** Counts every lease that the agent holds as lost. */
  loseLeasesOf(agent: AgentName, touches: Touches): void;
}

/** At most so many agents turn inactive in one write. */
const retiredMax = 100;

export function createAgentStore(context: SqliteContext, needs: AgentNeeds): AgentStore {
  const { writer, ledger, clock } = context;
  const rows = createAgentRows(context.db);
  const edits = createAgentEdits(context, rows);

  function readLive(owner: string, id: string): AgentRow | undefined {
    const row = rows.read.get({ owner, id });
    return row?.deletedUs === null ? row : undefined;
  }

  function requireLive(owner: string, id: string): AgentRow {
    const row = readLive(owner, id);
    if (row === undefined) throw agentNotFound(id);
    return row;
  }

  return {
    registerAgent: (owner, registration) =>
      writer.write(() => {
        const former = readLive(owner, registration.id);
        edits.register(owner, registration, former);
        const agent = toAgent(requireLive(owner, registration.id));
        const result = { agent, created: former === undefined };
        return { result, touched: new Touches().feed(owner) };
      }),

    getAgent: (owner, id) =>
      writer.read(() => {
        const found = needs.names.resolve(owner, id);
        if (found === null) throw agentNotFound(id);
        return toAgent(requireLive(found.owner, id));
      }),

    listAgents: (owner, query) => writer.read(() => readAgentPage(owner, query, { rows, ledger })),

    deregisterAgent: (owner, id) =>
      writer.write(() => {
        const row = requireLive(owner, id);
        const touched = new Touches().feed(owner);
        needs.loseLeasesOf({ owner, id }, touched);
        edits.remove(row);
        return { result: undefined, touched };
      }),

    touchAgent: (owner, id) =>
      writer.write(() => {
        const touched = new Touches();
        const row = readLive(owner, id);
        if (row === undefined) return { result: undefined, touched };
        rows.writeSeen.run({ owner, id, nowUs: clock.wallUs() });
        if (row.status === "inactive") edits.setStatus(row, "active", touched);
        return { result: undefined, touched };
      }),

    retireAgents: (seenBeforeUs) =>
      writer.write(() => {
        const touched = new Touches();
        const silent = rows.readSilent.all({ seenBeforeUs, limit: retiredMax + 1 });
        for (const row of silent.slice(0, retiredMax)) edits.setStatus(row, "inactive", touched);
        return { result: { hasMore: silent.length > retiredMax }, touched };
      }),

    listHolders: (owner) =>
      writer.read(() => rows.readHolders.all({ owner, steadyUs: clock.steadyUs() }).map(toAgent)),
  };
}
