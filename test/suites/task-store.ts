import { describe } from "vitest";
import type { OpenedStore } from "./open-store.ts";
import { taskGrantSuite } from "./task-grants.ts";
import { taskHistorySuite } from "./task-histories.ts";
import { taskLeaseSuite } from "./task-leases.ts";
import { taskReportSuite } from "./task-reports.ts";
import { taskSweepSuite } from "./task-sweep.ts";

/** The promises of TaskStore, for any store. */
export function taskStoreSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: tasks`, () => {
    describe("grantTasks", () => taskGrantSuite(open));
    describe("heartbeatTasks", () => taskLeaseSuite(open));
    describe("completeTask, failTask and releaseTask", () => taskReportSuite(open));
    describe("sweepTasks and restoreLeases", () => taskSweepSuite(open));
    describe("any history", () => taskHistorySuite(open));
  });
}
