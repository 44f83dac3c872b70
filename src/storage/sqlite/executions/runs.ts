import type { Touches } from "../ledger.ts";
import type { Moves } from "./execution-moves.ts";
import type { ExecutionRows } from "./execution-rows.ts";

export interface Runs {
  /**
   * Ends the active executions of a workflow as cancelled, without grace. Only to be used inside a
   * write.
   */
  cancelRunsOf(workflowId: string, touches: Touches): void;
}

export function createRuns(rows: ExecutionRows, moves: Moves): Runs {
  return {
    cancelRunsOf(workflowId, touches) {
      for (const row of rows.activeOf.all({ workflowId })) {
        moves.end(row, { status: "cancelled" }, touches);
      }
    },
  };
}
