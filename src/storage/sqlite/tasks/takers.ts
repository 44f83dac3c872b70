import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import type { AgentName } from "../../../domain/agent.ts";
import { agentNotFound } from "../../../domain/errors.ts";
import { splitCapabilities } from "../agents/capability-text.ts";
import { bound } from "../bound.ts";
import { agent } from "../schema.ts";

/** A registered agent, as it counts for what it may take. */
export interface Taker {
  readonly owner: string;
  readonly id: string;
  readonly capabilities: readonly string[];
  readonly isPublic: boolean;
}

export interface Takers {
  /** Null when it is not registered (any more). */
  find(name: AgentName): Taker | null;
  /** The calling agent. Throws AGENT_NOT_FOUND. */
  require(name: AgentName): Taker;
}

export function createTakers(db: BetterSQLite3Database): Takers {
  const read = db
    .select({ capabilities: agent.capabilities, isPublic: agent.isPublic })
    .from(agent)
    .where(sql`${agent.owner} = ${bound("owner")}
      AND ${agent.id} = ${bound("id")} AND ${agent.deletedUs} IS NULL`)
    .prepare();

  function find({ owner, id }: AgentName): Taker | null {
    const row = read.get({ owner, id });
    if (row === undefined) return null;
    const { capabilities, isPublic } = row;
    return { owner, id, capabilities: splitCapabilities(capabilities), isPublic };
  }

  return {
    find,
    require(name) {
      const taker = find(name);
      if (taker === null) throw agentNotFound(name.id);
      return taker;
    },
  };
}
