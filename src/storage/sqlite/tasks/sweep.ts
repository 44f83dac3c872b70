import type { Change, TaskStore } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import type { ExecutionRow } from "../executions/execution-rows.ts";
import { Touches } from "../ledger.ts";
import type { TaskNeeds } from "./task-needs.ts";

/** Moves what time has moved on. Each execution is a write of its own: one that fails, fails alone. */
export function createSweep(
  { writer, clock }: SqliteContext,
  { rows, moves, leases }: TaskNeeds,
): TaskStore["sweepTasks"] {
  function move(row: ExecutionRow, touches: Touches): void {
    const nowUs = clock.steadyUs();
    const { startDeadlineUs, deadlineUs, cancelUs, leaseUntilUs } = row;
    if (deadlineUs === null) {
      if (startDeadlineUs > nowUs) return;
      moves.end(row, { status: "timed_out", failure: "SCHEDULE_TO_START" }, touches);
    } else if (cancelUs !== null && Math.min(cancelUs, deadlineUs) <= nowUs) {
      moves.end(row, { status: "cancelled" }, touches);
    } else if (deadlineUs <= nowUs) {
      moves.end(row, { status: "timed_out", failure: "EXECUTION" }, touches);
    } else if (leaseUntilUs !== null && leaseUntilUs <= nowUs) {
      leases.loseLease(row, touches);
    }
  }

  function moveDue(id: string): Promise<Touches> {
    return writer.write(() => {
      const touches = new Touches();
      const row = rows.find.get({ id });
      // What was reported meanwhile has no wake time, or a later one.
      if (row?.wakeUs != null && row.wakeUs <= clock.steadyUs()) move(row, touches);
      return touches;
    });
  }

  return async (limit) => {
    const due = await writer.read(() => rows.due.all({ nowUs: clock.steadyUs(), limit }));
    const moved = await Promise.allSettled(due.map(({ id }) => moveDue(id)));
    const touched = merge(moved);
    const nextDueUs = await writer.read(() => rows.nextWake.get()?.wakeUs ?? null);
    return { result: { nextDueUs }, touched };
  };
}

/** Throws only when nothing could be moved: what was moved has to be announced. */
function merge(moved: readonly PromiseSettledResult<Touches>[]): Change<void>["touched"] {
  const touched = new Touches();
  const failed = moved.filter((it) => it.status === "rejected");
  const done = moved.filter((it) => it.status === "fulfilled");
  const [first] = failed;
  if (first !== undefined && done.length === 0) throw first.reason;
  for (const { value } of done) touched.add(value);
  return touched;
}
