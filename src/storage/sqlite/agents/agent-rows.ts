import { count, sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { alias } from "drizzle-orm/sqlite-core";
import type { Agent } from "../../../domain/agent.ts";
import { bound, firstBy } from "../bound.ts";
import { agent, execution } from "../schema.ts";
import { splitCapabilities } from "./capability-text.ts";

export type AgentRow = typeof agent.$inferSelect;
export type AgentRows = ReturnType<typeof createAgentRows>;

const p = sql.placeholder;
const isThis = sql`${agent.owner} = ${p("owner")} AND ${agent.id} = ${p("id")}`;
const isLive = sql`${agent.deletedUs} IS NULL`;
const isPublic = sql`${agent.isPublic} = 1 AND ${isLive}`;

/** The statements of agents, prepared once. */
export function createAgentRows(db: BetterSQLite3Database) {
  return {
    ...readStatements(db),
    ...writeStatements(db),
    ...pageStatements(db),
  };
}

export function toAgent(row: AgentRow): Agent {
  return {
    id: row.id,
    owner: row.owner,
    name: row.name,
    type: row.type,
    capabilities: splitCapabilities(row.capabilities),
    status: row.status,
    isPublic: row.isPublic,
    registeredUs: row.registeredUs,
    lastSeenUs: row.lastSeenUs,
  };
}

function readStatements(db: BetterSQLite3Database) {
  const holders = sql`SELECT ${execution.agentId} FROM ${execution}
    WHERE ${execution.agentOwner} = ${p("owner")} AND ${execution.status} = 'running'
      AND ${execution.leaseUntilUs} > ${p("steadyUs")}`;
  return {
    /** Deregistered ones too. */
    read: db.select().from(agent).where(isThis).prepare(),
    readPublic: db
      .select()
      .from(agent)
      .where(sql`${agent.id} = ${p("id")} AND ${isPublic}`)
      .prepare(),
    readSilent: db
      .select()
      .from(agent)
      .where(sql`${agent.status} = 'active' AND ${isLive}
        AND ${agent.lastSeenUs} < ${p("seenBeforeUs")}`)
      .limit(p("limit"))
      .prepare(),
    readHolders: db
      .select()
      .from(agent)
      .where(sql`${agent.owner} = ${p("owner")} AND ${isLive}
        AND ${agent.id} IN (${holders})`)
      .orderBy(agent.id)
      .prepare(),
  };
}

function writeStatements(db: BetterSQLite3Database) {
  return {
    upsert: db
      .insert(agent)
      .values({
        owner: p("owner"),
        id: p("id"),
        name: p("name"),
        type: p("type"),
        capabilities: p("capabilities"),
        status: "active",
        isPublic: p("isPublic"),
        registeredUs: p("registeredUs"),
        lastSeenUs: p("nowUs"),
        seq: p("seq"),
        changedUs: p("nowUs"),
      })
      .onConflictDoUpdate({
        target: [agent.owner, agent.id],
        set: {
          name: sql`excluded.name`,
          type: sql`excluded.type`,
          capabilities: sql`excluded.capabilities`,
          status: sql`excluded.status`,
          isPublic: sql`excluded.is_public`,
          registeredUs: sql`excluded.registered_us`,
          lastSeenUs: sql`excluded.last_seen_us`,
          deletedUs: null,
          seq: sql`excluded.seq`,
          changedUs: sql`excluded.changed_us`,
        },
      })
      .prepare(),
    writeSeen: db
      .update(agent)
      .set({ lastSeenUs: sql`${p("nowUs")}` })
      .where(isThis)
      .prepare(),
    writeStatus: db
      .update(agent)
      .set({
        status: sql`${p("status")}`,
        seq: sql`${p("seq")}`,
        changedUs: sql`${p("nowUs")}`,
      })
      .where(sql`${isThis} AND ${agent.status} = ${p("from")} AND ${isLive}`)
      .prepare(),
    /** Leaves the id, which stays its owner's, and its place in the feed. */
    markDeleted: db
      .update(agent)
      .set({
        name: "",
        type: "",
        capabilities: "",
        status: "inactive",
        isPublic: false,
        deletedUs: sql`${p("nowUs")}`,
        seq: sql`${p("seq")}`,
        changedUs: sql`${p("nowUs")}`,
      })
      .where(sql`${isThis} AND ${isLive}`)
      .prepare(),
  };
}

/** The key as a row value: only so is the whole of it searched in the index. */
function pageStatements(db: BetterSQLite3Database) {
  const own = alias(agent, "own");
  const isOwnId = sql`EXISTS (SELECT 1 FROM ${agent} AS own
    WHERE ${own.owner} = ${bound("owner")} AND ${own.id} = ${agent.id})`;
  const isOlder = sql`(${agent.registeredUs}, ${agent.id})
    < (${bound("createdUs")}, ${bound("id")})`;
  const pageOf = (condition: ReturnType<typeof sql>) =>
    db
      .select()
      .from(agent)
      .where(condition)
      .orderBy(firstBy(sql`${agent.registeredUs} DESC, ${agent.id} DESC`))
      .prepare();
  const isOwn = sql`${agent.owner} = ${bound("owner")} AND ${isLive} AND ${isOlder}`;
  const isOthers = sql`${isPublic} AND ${isOlder} AND NOT ${isOwnId}`;
  const hasStatus = sql`${agent.status} = ${bound("status")}`;
  return {
    pageOfOwn: pageOf(isOwn),
    pageOfOwnStatus: pageOf(sql`${isOwn} AND ${hasStatus}`),
    pageOfPublic: pageOf(isOthers),
    pageOfPublicStatus: pageOf(sql`${isOthers} AND ${hasStatus}`),
    /**
     * Public agents that an own id hides, the own public ones among them. CROSS JOIN: the own ones
     * are looked through, for they are the few.
     */
    countHidden: db
      .select({ n: count() })
      .from(own)
      .crossJoin(agent)
      .where(
        sql`${own.owner} = ${p("owner")} AND ${agent.id} = ${own.id}
          AND ${isPublic} AND ${hasStatus}`,
      )
      .prepare(),
  };
}
