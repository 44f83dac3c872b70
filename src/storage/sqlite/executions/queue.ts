import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { mayTake, routeOf } from "../../../domain/execution.ts";
import { bound, firstBy } from "../bound.ts";
import type { SqliteContext } from "../context.ts";
import { execution } from "../schema.ts";
import type { Taker } from "../tasks/takers.ts";

export interface Look {
  /** Ids of one owner's executions that may be granted now, oldest due first. */
  readonly picked: readonly string[];
  /** The earliest due time of all that waits and that the agent may take; null for none. */
  readonly nextDueUs: number | null;
}

/** What waits. It seeks into the index of each line and never scans. */
export interface Queue {
  /** What the agent may take, at most `max`. */
  look(taker: Taker, max: number): Look;
  /** Whether something waits in this line. */
  isWaitedIn(line: { readonly owner: string; readonly route: string }): boolean;
  /** How many sets of required capabilities something of this owner waits for. */
  countSets(owner: string): number;
}

interface Waiting {
  readonly id: string;
  readonly owner: string;
  readonly dueUs: number;
}

export function createQueue({ db, clock }: SqliteContext): Queue {
  const statements = createQueueStatements(db);

  return {
    look(taker, max) {
      const nowUs = clock.steadyUs();
      const reach = { routeOwner: taker.owner, nowUs, isPublic: Number(taker.isPublic) };
      const capabilities = new Set(taker.capabilities);
      const heads = [
        ...statements.heads.all({ routeOwner: taker.owner, nowUs }),
        ...statements.headOf.all({ ...reach, route: routeOf(taker.id, []) }),
      ].filter(isHead);
      const mine = heads.filter(({ route }) => mayTake(route, taker.id, capabilities));
      const dueHeads = mine
        .filter((head) => head.dueUs <= nowUs)
        .sort((a, b) => a.dueUs - b.dueUs)
        // The oldest `max` lie in the `max` lines with the oldest heads.
        .slice(0, max);
      const waiting = dueHeads.flatMap(({ route }) =>
        statements.dueIn.all({ ...reach, route, limit: max }),
      );
      return {
        picked: pickOneOwners(waiting, max),
        nextDueUs: mine.length === 0 ? null : Math.min(...mine.map(({ dueUs }) => dueUs)),
      };
    },
    isWaitedIn: ({ owner, route }) =>
      statements.anyIn.get({ routeOwner: owner, route }) !== undefined,
    countSets: (owner) => statements.sets.get({ routeOwner: owner })?.n ?? 0,
  };
}

interface Head {
  readonly route: string;
  readonly dueUs: number;
}

/** All of a line may have timed out, not swept yet. */
function isHead(head: { readonly route: string; readonly dueUs: number | null }): head is Head {
  return head.dueUs !== null;
}

/** One write moves one owner's rows: those of the owner who has waited longest. */
function pickOneOwners(waiting: readonly Waiting[], max: number): readonly string[] {
  const inOrder = waiting.toSorted((a, b) => a.dueUs - b.dueUs || (a.id < b.id ? -1 : 1));
  return inOrder
    .filter(({ owner }) => owner === inOrder[0]?.owner)
    .slice(0, max)
    .map(({ id }) => id);
}

const isQueued = sql`status = 'queued' AND route_owner = ${bound("routeOwner")}`;

/**
 * The lines of capabilities in which something of an owner waits, one seek each: from a route to
 * the next greater one. Its last row is null.
 */
const sets = sql`WITH RECURSIVE line(route) AS (
    SELECT min(route) FROM execution WHERE ${isQueued} AND route >= 'c:'
    UNION ALL
    SELECT (SELECT min(route) FROM execution WHERE ${isQueued} AND route > line.route)
      FROM line WHERE line.route IS NOT NULL
  )`;

function createQueueStatements(db: BetterSQLite3Database) {
  // (A time-out that has passed keeps an execution from being granted; the sweeper ends it. The
  // plus signs keep the index of the sweeper out of it.)
  const isAlive = sql`+wake_us > ${bound("nowUs")}`;
  const isInLine = sql`status = 'queued' AND route_owner = ${bound("routeOwner")}
    AND route = ${bound("route")}`;
  // An agent that is public no more works for its owner alone.
  const isAllowed = sql`(owner = ${bound("routeOwner")} OR ${bound("isPublic")})`;
  const head = { route: sql<string>`route`, dueUs: sql<number | null>`due_us` };
  return {
    heads: db
      .select(head)
      .from(sql`(${sets}
        SELECT route, (SELECT due_us FROM execution
            WHERE ${isQueued} AND route = line.route AND ${isAlive}
            ORDER BY due_us LIMIT 1) AS due_us
          FROM line WHERE route IS NOT NULL)`)
      .prepare(),
    headOf: db
      .select(head)
      .from(execution)
      .where(sql`${isInLine} AND ${isAllowed} AND ${isAlive}`)
      .orderBy(sql`due_us LIMIT 1`)
      .prepare(),
    dueIn: db
      .select({ id: execution.id, owner: execution.owner, dueUs: execution.dueUs })
      .from(execution)
      .where(sql`${isInLine} AND due_us <= ${bound("nowUs")} AND ${isAllowed} AND ${isAlive}`)
      .orderBy(firstBy(sql`due_us, id`))
      .prepare(),
    anyIn: db
      .select({ id: execution.id })
      .from(execution)
      .where(sql`${isInLine} LIMIT 1`)
      .prepare(),
    sets: db
      .select({ n: sql<number>`n` })
      .from(sql`(${sets} SELECT count(route) AS n FROM line)`)
      .prepare(),
  };
}
