import { spans } from "../../../domain/limits.ts";
import { requireOne } from "../require-one.ts";
import { queuedCounter } from "./execution-counters.ts";
import type { MoveParts, Moves } from "./execution-moves.ts";
import { fromOf } from "./move-statements.ts";

/** A lease is given, renewed, or asked back. */
export function createLeaseMoves({
  context,
  statements,
  book,
}: MoveParts): Pick<Moves, "grant" | "renew" | "askCancel"> {
  const { ledger, clock } = context;
  return {
    grant(row, { agent, pollId, leaseUs }, touches) {
      const { owner } = row;
      const nowUs = clock.steadyUs();
      const isFirst = row.startedUs === null;
      const changedUs = isFirst ? clock.wallUs() : row.changedUs;
      const leaseUntilUs = nowUs + leaseUs;
      const deadlineUs = row.deadlineUs ?? nowUs + row.timeoutUs;
      const given = {
        wakeUs: Math.min(leaseUntilUs, deadlineUs),
        attempt: row.attempt + Number(row.isNewAttempt),
        deadlineUs,
        agentOwner: agent.owner,
        agentId: agent.id,
        pollId,
        leaseToken: context.newToken(),
        leaseUs,
        leaseUntilUs,
        startedUs: row.startedUs ?? changedUs,
        seq: isFirst ? ledger.nextSeq(owner) : row.seq,
        changedUs,
      };
      requireOne(statements.grant.run({ ...fromOf(row), ...given }));
      ledger.count(queuedCounter(owner), -1);
      if (isFirst) {
        book.note(row.workflowId, { waiting: -1, started: 1 }, touches);
        touches.feed(owner);
      }
      // Who lost the lease before could take it up again until now.
      if (row.leaseToken !== "") touches.execution(row.id);
      return { ...row, status: "running", ...given };
    },
    renew(row, leaseUs) {
      const leaseUntilUs = clock.steadyUs() + leaseUs;
      const wasLost = row.status === "queued";
      const moved = statements.renew.run({
        ...fromOf(row),
        wakeUs: earliest(leaseUntilUs, row.deadlineUs, row.cancelUs),
        losses: row.losses - Number(wasLost),
        leaseUs,
        leaseUntilUs,
      });
      requireOne(moved);
      if (wasLost) ledger.count(queuedCounter(row.owner), -1);
    },
    askCancel(row, touches) {
      const cancelUs = clock.steadyUs() + spans.cancelGraceUs;
      const wakeUs = earliest(cancelUs, row.leaseUntilUs, row.deadlineUs);
      requireOne(statements.askCancel.run({ ...fromOf(row), wakeUs, cancelUs }));
      touches.execution(row.id);
    },
  };
}

function earliest(...timesUs: readonly (number | null)[]): number {
  return Math.min(...timesUs.filter((us) => us !== null));
}
