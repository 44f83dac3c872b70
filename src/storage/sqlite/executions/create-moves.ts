import { outcomeOf } from "../../../domain/execution.ts";
import type { SqliteContext } from "../context.ts";
import { requireOne } from "../require-one.ts";
import { createWorkflowRunsBook } from "../workflows/workflow-runs.ts";
import { queuedCounter } from "./execution-counters.ts";
import type { MoveParts, Moves } from "./execution-moves.ts";
import { createLeaseMoves } from "./lease-moves.ts";
import { createMoveStatements, fromOf } from "./move-statements.ts";
import { createQueueMoves } from "./queue-moves.ts";

export function createMoves(context: SqliteContext): Moves {
  const statements = createMoveStatements(context.db);
  const parts: MoveParts = { context, statements, book: createWorkflowRunsBook(context) };
  return { ...createQueueMoves(parts), ...createLeaseMoves(parts), end: createEnd(parts) };
}

function createEnd({ context, statements, book }: MoveParts): Moves["end"] {
  const { ledger, clock } = context;
  return (row, { status, failure, errorCode }, touches) => {
    const { owner, workflowId } = row;
    const moved = statements.end.run({
      ...fromOf(row),
      status,
      failure: failure ?? null,
      errorCode: errorCode ?? failure ?? "",
      finishedUs: clock.wallUs(),
      seq: ledger.nextSeq(owner),
    });
    requireOne(moved);
    if (row.status === "queued") ledger.count(queuedCounter(owner), -1);
    const wasStarted = row.startedUs !== null;
    const change = wasStarted ? { started: -1, lastOutcome: outcomeOf(status) } : { waiting: -1 };
    book.note(workflowId, change, touches);
    touches.feed(owner).execution(row.id);
  };
}
