import type { ExecutionContent } from "../executions/execution-content.ts";
import type { Moves } from "../executions/execution-moves.ts";
import type { ExecutionRows } from "../executions/execution-rows.ts";
import type { Leases } from "../executions/leases.ts";
import type { Queue } from "../executions/queue.ts";
import type { Takers } from "./takers.ts";

/** What tasks need of the other parts. */
export interface TaskNeeds {
  readonly rows: ExecutionRows;
  readonly content: ExecutionContent;
  readonly moves: Moves;
  readonly leases: Leases;
  readonly queue: Queue;
  readonly takers: Takers;
}
