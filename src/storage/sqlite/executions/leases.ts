import { sql } from "drizzle-orm";
import type { AgentName } from "../../../domain/agent.ts";
import { hasEnded } from "../../../domain/execution.ts";
import { limits, spans } from "../../../domain/limits.ts";
import type { SqliteContext } from "../context.ts";
import type { Touches } from "../ledger.ts";
import { execution } from "../schema.ts";
import type { Moves } from "./execution-moves.ts";
import type { ExecutionRow, ExecutionRows } from "./execution-rows.ts";

/** The leases of executions. Only to be used inside a write. */
export interface Leases {
  /**
   * A held lease is lost: queued again at once, unless a cancel was asked for, the work may not be
   * done twice, or too many leases were lost before.
   */
  loseLease(row: ExecutionRow, touches: Touches): void;
  /** Counts every lease that the agent holds as lost. */
  loseLeasesOf(agent: AgentName, touches: Touches): void;
  /**
   * Gives every held lease its full length from now on. A clock that was set back between two runs
   * of the server prolongs no pause, time-out or grace.
   */
  restoreLeases(): void;
}

/** Who reports, and on the strength of what. */
export interface LeaseClaim {
  readonly agent: AgentName;
  readonly leaseToken: string;
  readonly nowUs: number;
}

/**
 * Whether an attempt is still the claimer's: it is until it was reported, granted to somebody else,
 * or has come to the end of its time-out or of a cancel's grace. That the lease ran out alone does
 * not end it.
 */
export function holdsLease(row: ExecutionRow, claim: LeaseClaim): boolean {
  const { agent, leaseToken, nowUs } = claim;
  return (
    leaseToken !== "" &&
    row.leaseToken === leaseToken &&
    row.agentOwner === agent.owner &&
    row.agentId === agent.id &&
    !hasEnded(row.status) &&
    (row.deadlineUs ?? nowUs) > nowUs &&
    (row.cancelUs === null || row.cancelUs > nowUs)
  );
}

/** How many leases were lost, when the agent that lost the last one is heard of again. */
export function lossesWhenHeardOf({ losses, status }: ExecutionRow): number {
  return status === "queued" ? losses - 1 : losses;
}

export function createLeases(
  { db, clock }: SqliteContext,
  { rows, moves }: { readonly rows: ExecutionRows; readonly moves: Moves },
): Leases {
  const restore = createRestoreStatements(db);

  function loseLease(row: ExecutionRow, touches: Touches): void {
    const losses = row.losses + 1;
    if (row.cancelUs !== null) moves.end(row, { status: "cancelled" }, touches);
    else if (row.atMostOnce) {
      moves.end(row, { status: "failed", failure: "OUTCOME_UNKNOWN" }, touches);
    } else if (losses >= limits.lossesMax) {
      moves.end(row, { status: "failed", failure: "AGENT_LOST" }, touches);
    } else {
      const { failures } = row;
      const wait = { pauseUs: 0, isNewAttempt: true, failures, losses, keepsToken: true };
      moves.queueAgain(row, wait, touches);
    }
  }

  return {
    loseLease,
    loseLeasesOf(agent, touches) {
      for (const row of rows.heldBy.all({ agentOwner: agent.owner, agentId: agent.id })) {
        loseLease(row, touches);
      }
    },
    restoreLeases() {
      const nowUs = clock.steadyUs();
      restore.running.run({ nowUs, graceUs: spans.cancelGraceUs });
      restore.queued.run({ nowUs });
    },
  };
}

const p = sql.placeholder;

/** All that is active has a wake time: the condition on it makes them seeks into the index. */
function createRestoreStatements(db: SqliteContext["db"]) {
  const isActive = sql`${execution.wakeUs} >= 0`;
  const leaseUntilUs = sql`${p("nowUs")} + ${execution.leaseUs}`;
  const deadlineUs = sql`min(${execution.deadlineUs}, ${p("nowUs")} + ${execution.timeoutUs})`;
  const startDeadlineUs = sql`min(${execution.startDeadlineUs},
    ${p("nowUs")} + ${execution.startTimeoutUs})`;
  const cancelUs = sql`min(${execution.cancelUs}, ${p("nowUs")} + ${p("graceUs")})`;
  return {
    running: db
      .update(execution)
      .set({
        leaseUntilUs,
        deadlineUs,
        cancelUs,
        wakeUs: sql`min(${leaseUntilUs}, ${deadlineUs}, coalesce(${cancelUs}, ${leaseUntilUs}))`,
      })
      .where(sql`${isActive} AND ${execution.status} = 'running'`)
      .prepare(),
    queued: db
      .update(execution)
      .set({
        dueUs: sql`min(${execution.dueUs}, ${p("nowUs")} + ${execution.pauseUs})`,
        deadlineUs,
        startDeadlineUs,
        wakeUs: sql`coalesce(${deadlineUs}, ${startDeadlineUs})`,
      })
      .where(sql`${isActive} AND ${execution.status} = 'queued'`)
      .prepare(),
  };
}
