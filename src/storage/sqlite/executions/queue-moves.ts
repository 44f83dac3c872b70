import { requireOne } from "../require-one.ts";
import { executionCounter, queuedCounter } from "./execution-counters.ts";
import type { MoveParts, Moves } from "./execution-moves.ts";
import { fromOf } from "./move-statements.ts";

/** Into the queue, for the first time or again. */
export function createQueueMoves({
  context,
  statements,
  book,
}: MoveParts): Pick<Moves, "queue" | "queueAgain"> {
  const { ledger, clock } = context;
  return {
    queue(draft, touches) {
      const { id, owner, workflowId, line } = draft;
      const dueUs = clock.steadyUs();
      statements.insert.run({
        id,
        owner,
        workflowId,
        routeOwner: line.owner,
        route: line.route,
        dueUs,
        maxAttempts: draft.maxAttempts,
        atMostOnce: draft.atMostOnce,
        timeoutUs: draft.timeoutUs,
        startTimeoutUs: draft.startTimeoutUs,
        startDeadlineUs: dueUs + draft.startTimeoutUs,
        createdUs: clock.wallUs(),
        seq: ledger.nextSeq(owner),
      });
      ledger.count(queuedCounter(owner), 1);
      if (workflowId !== "") ledger.count(executionCounter(owner, workflowId), 1);
      book.note(workflowId, { waiting: 1 }, touches);
      touches.feed(owner).line({ owner: line.owner, route: line.route, dueUs });
    },
    queueAgain(row, wait, touches) {
      const dueUs = clock.steadyUs() + wait.pauseUs;
      const moved = statements.queueAgain.run({
        ...fromOf(row),
        dueUs,
        pauseUs: wait.pauseUs,
        wakeUs: row.deadlineUs,
        isNewAttempt: Number(wait.isNewAttempt),
        failures: wait.failures,
        losses: wait.losses,
        leaseToken: wait.keepsToken ? row.leaseToken : "",
      });
      requireOne(moved);
      if (row.status === "running") ledger.count(queuedCounter(row.owner), 1);
      touches.line({ owner: row.routeOwner, route: row.route, dueUs }).execution(row.id);
    },
  };
}
