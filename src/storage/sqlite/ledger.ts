import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import type { Clock } from "../../domain/clock.ts";
import { nextPosition } from "../../domain/cursor.ts";
import type { QueueLine, Touched } from "../port.ts";
import { counter, feedHead } from "./schema.ts";

/** What every write shares: feed positions and counters. Only to be used inside a write. */
export interface Ledger {
  /** Takes the owner's next position of the feed. */
  nextSeq(owner: string): number;
  /** Takes several positions in one write. */
  positions(owner: string): Positions;
  /** The position of the owner's last change; 0 for none. */
  head(owner: string): number;
  /** Adds to a counter; `by` may be negative. */
  count(key: CounterKey, by: number): void;
  counted(key: CounterKey): number;
  /** Of all statuses. */
  total(owner: string, kind: string): number;
}

/** Positions of one owner's feed, in the order they are taken. */
export interface Positions {
  take(): number;
  /** Stores the last one: in the same write, and before anybody else takes any. */
  save(): void;
}

export interface CounterKey {
  readonly owner: string;
  readonly kind: string;
  readonly status: string;
}

export function createLedger(db: BetterSQLite3Database, clock: Clock): Ledger {
  const readHead = db
    .select({ seq: feedHead.seq })
    .from(feedHead)
    .where(sql`${feedHead.owner} = ${sql.placeholder("owner")}`)
    .prepare();
  const writeHead = db
    .insert(feedHead)
    .values({ owner: sql.placeholder("owner"), seq: sql.placeholder("seq") })
    .onConflictDoUpdate({ target: feedHead.owner, set: { seq: sql`excluded.seq` } })
    .prepare();
  const addCount = db
    .insert(counter)
    .values({
      owner: sql.placeholder("owner"),
      kind: sql.placeholder("kind"),
      status: sql.placeholder("status"),
      n: sql.placeholder("by"),
    })
    .onConflictDoUpdate({
      target: [counter.owner, counter.kind, counter.status],
      set: { n: sql`${counter.n} + excluded.n` },
    })
    .prepare();
  const readCount = db
    .select({ n: counter.n })
    .from(counter)
    .where(
      sql`${counter.owner} = ${sql.placeholder("owner")}
        AND ${counter.kind} = ${sql.placeholder("kind")}
        AND ${counter.status} = ${sql.placeholder("status")}`,
    )
    .prepare();
  const readTotal = db
    .select({ n: sql<number | null>`sum(${counter.n})` })
    .from(counter)
    .where(
      sql`${counter.owner} = ${sql.placeholder("owner")}
        AND ${counter.kind} = ${sql.placeholder("kind")}`,
    )
    .prepare();

  const head = (owner: string) => readHead.get({ owner })?.seq ?? 0;
  function positions(owner: string): Positions {
    const first = head(owner);
    let seq = first;
    return {
      take() {
        seq = nextPosition(seq, clock.wallUs());
        return seq;
      },
      save() {
        if (seq !== first) writeHead.run({ owner, seq });
      },
    };
  }

  return {
    head,
    nextSeq(owner) {
      const one = positions(owner);
      const seq = one.take();
      one.save();
      return seq;
    },
    positions,
    count({ owner, kind, status }, by) {
      addCount.run({ owner, kind, status, by });
    },
    counted: ({ owner, kind, status }) => readCount.get({ owner, kind, status })?.n ?? 0,
    total: (owner, kind) => readTotal.get({ owner, kind })?.n ?? 0,
  };
}

/** Collects what a write touches. */
export class Touches implements Touched {
  readonly feeds: string[] = [];
  readonly queued: QueueLine[] = [];
  readonly executions: string[] = [];

  feed(owner: string): this {
    if (!this.feeds.includes(owner)) this.feeds.push(owner);
    return this;
  }

  line(line: QueueLine): this {
    this.queued.push(line);
    return this;
  }

  execution(id: string): this {
    if (!this.executions.includes(id)) this.executions.push(id);
    return this;
  }

  /** Takes over what another write touched. */
  add({ feeds, queued, executions }: Touched): this {
    for (const owner of feeds) this.feed(owner);
    for (const line of queued) this.line(line);
    for (const id of executions) this.execution(id);
    return this;
  }
}
