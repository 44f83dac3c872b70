import type { TaskStore } from "../port.ts";
import type { SqliteContext } from "./context.ts";
import type { ExecutionContent } from "./execution-content.ts";
import type { Moves } from "./execution-moves.ts";
import type { ExecutionRows } from "./execution-rows.ts";
import { createGrants } from "./grants.ts";
import { createHeartbeats } from "./heartbeats.ts";
import type { Leases } from "./leases.ts";
import type { Queue } from "./queue.ts";
import { createReports } from "./reports.ts";
import { createSweep } from "./sweep.ts";
import type { Takers } from "./takers.ts";
import { createTaskRows } from "./task-rows.ts";

/** What tasks need of the other parts. */
export interface TaskNeeds {
  readonly rows: ExecutionRows;
  readonly content: ExecutionContent;
  readonly moves: Moves;
  readonly leases: Leases;
  readonly queue: Queue;
  readonly takers: Takers;
}

export function createTaskStore(context: SqliteContext, needs: TaskNeeds): TaskStore {
  const taskRows = createTaskRows(context.db);
  return {
    grantTasks: createGrants(context, needs, taskRows),
    heartbeatTasks: createHeartbeats(context, needs),
    ...createReports(context, needs, taskRows),
    sweepTasks: createSweep(context, needs),
    restoreLeases: () => context.writer.write(() => needs.leases.restoreLeases()),
  };
}
