import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import type { AgentName } from "../../../domain/agent.ts";
import { agentNotFound, invalid } from "../../../domain/errors.ts";
import { agent } from "../schema.ts";

/** Whom a caller means by the id of an agent. */
export interface AgentNames {
  /**
   * The owner's own agent; else the public one of that id. Null when there is neither, and for an
   * id whose own agent was deregistered: it stays its owner's.
   */
  resolve(owner: string, id: string): AgentName | null;
  /**
   * The agent that a workflow, or a call of one, names; both fields empty when it names none.
   * Throws AGENT_NOT_FOUND, and VALIDATION_ERROR for another owner's without `allowPublic`.
   */
  choose(owner: string, choice: AgentChoice): AgentName;
}

export interface AgentChoice {
  /** Empty: none. */
  readonly agentId: string;
  readonly allowPublic: boolean;
}

export function createAgentNames(db: BetterSQLite3Database): AgentNames {
  const readOwn = db
    .select({ deletedUs: agent.deletedUs })
    .from(agent)
    .where(
      sql`${agent.owner} = ${sql.placeholder("owner")} AND ${agent.id} = ${sql.placeholder("id")}`,
    )
    .prepare();
  const readPublic = db
    .select({ owner: agent.owner })
    .from(agent)
    .where(
      sql`${agent.id} = ${sql.placeholder("id")}
        AND ${agent.isPublic} = 1 AND ${agent.deletedUs} IS NULL`,
    )
    .prepare();

  function resolve(owner: string, id: string): AgentName | null {
    const own = readOwn.get({ owner, id });
    if (own !== undefined) return own.deletedUs === null ? { owner, id } : null;
    const shared = readPublic.get({ id });
    return shared === undefined ? null : { owner: shared.owner, id };
  }

  return {
    resolve,
    choose(owner, { agentId, allowPublic }) {
      if (agentId === "") return { owner: "", id: "" };
      const found = resolve(owner, agentId);
      if (found === null) throw agentNotFound(agentId);
      requireAllowed(owner, found, allowPublic);
      return found;
    },
  };
}

/** Capabilities never choose another owner's agent; only a name together with consent does. */
export function requireAllowed(owner: string, chosen: AgentName, allowPublic: boolean): void {
  if (chosen.id === "" || chosen.owner === owner || allowPublic) return;
  throw invalid("allow_public", "must be true: the agent belongs to another owner");
}
