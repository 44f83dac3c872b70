import type { TaskStore } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import { createGrants } from "./grants.ts";
import { createHeartbeats } from "./heartbeats.ts";
import { createReports } from "./reports.ts";
import { createSweep } from "./sweep.ts";
import type { TaskNeeds } from "./task-needs.ts";
import { createTaskRows } from "./task-rows.ts";

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
