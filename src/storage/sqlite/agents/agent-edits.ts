import type { AgentStatus } from "../../../domain/agent.ts";
import { ServiceError } from "../../../domain/errors.ts";
import type { Registration } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import type { CounterKey, Touches } from "../ledger.ts";
import { requireOne } from "../require-one.ts";
import type { AgentRow, AgentRows } from "./agent-rows.ts";
import { joinCapabilities } from "./capability-text.ts";

/** The edits of agents. Each takes a position of the feed; only to be used inside a write. */
export interface AgentEdits {
  /** `former`: the registration that is replaced. Throws AGENT_ID_TAKEN. */
  register(owner: string, registration: Registration, former: AgentRow | undefined): void;
  /** Moves a registered agent to another status than its present one. */
  setStatus(row: AgentRow, status: AgentStatus, touches: Touches): void;
  /** Leaves the id alone: it stays its owner's. */
  remove(row: AgentRow): void;
}

export function createAgentEdits(context: SqliteContext, rows: AgentRows): AgentEdits {
  const { ledger, clock } = context;

  function count({ owner, isPublic, status }: Counted, by: number): void {
    ledger.count(ownAgents(owner, status), by);
    if (isPublic) ledger.count(publicAgents(status), by);
  }

  return {
    register(owner, registration, former) {
      const { id, name, type, isPublic } = registration;
      if (isPublic) {
        const holder = rows.readPublic.get({ id });
        if (holder !== undefined && holder.owner !== owner) throw idTaken(id);
      }
      if (former !== undefined) count(former, -1);
      count({ owner, isPublic, status: "active" }, 1);
      const nowUs = clock.wallUs();
      rows.upsert.run({
        owner,
        id,
        name,
        type,
        capabilities: joinCapabilities(registration.capabilities),
        isPublic,
        registeredUs: former?.registeredUs ?? nowUs,
        nowUs,
        seq: ledger.nextSeq(owner),
      });
    },

    setStatus(row, status, touches) {
      const { owner, id, isPublic, status: from } = row;
      count(row, -1);
      count({ owner, isPublic, status }, 1);
      const nowUs = clock.wallUs();
      const seq = ledger.nextSeq(owner);
      requireOne(rows.writeStatus.run({ owner, id, from, status, nowUs, seq }));
      touches.feed(owner);
    },

    remove(row) {
      const { owner, id } = row;
      count(row, -1);
      const seq = ledger.nextSeq(owner);
      requireOne(rows.markDeleted.run({ owner, id, nowUs: clock.wallUs(), seq }));
    },
  };
}

/** Counts the registered agents of an owner. */
export function ownAgents(owner: string, status: AgentStatus): CounterKey {
  return { owner, kind: "agent", status };
}

/** Counts the public agents of all owners. */
export function publicAgents(status: AgentStatus): CounterKey {
  return { owner: "", kind: "public_agent", status };
}

type Counted = Pick<AgentRow, "owner" | "isPublic" | "status">;

function idTaken(agentId: string): ServiceError {
  return new ServiceError(
    "AGENT_ID_TAKEN",
    "Another owner has a public agent of this id. Choose another id, or stay private.",
    { details: { agentId } },
  );
}
