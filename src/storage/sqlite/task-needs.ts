import type { ExecutionContent } from "./execution-content.ts";
import type { Moves } from "./execution-moves.ts";
import type { ExecutionRows } from "./execution-rows.ts";
import type { Leases } from "./leases.ts";
import type { Queue } from "./queue.ts";
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
