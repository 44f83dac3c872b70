import { agentStoreSuite } from "./suites/agent-store.ts";
import { clientStoreSuite } from "./suites/client-store.ts";
import { executionStoreSuite } from "./suites/execution-store.ts";
import { openFreshSqliteStore } from "./suites/open-store.ts";
import { pruneSuite } from "./suites/prune.ts";
import { recordStoreSuite } from "./suites/record-store.ts";
import { storeLifeSuite } from "./suites/store-life.ts";
import { taskStoreSuite } from "./suites/task-store.ts";
import { workflowStoreSuite } from "./suites/workflow-store.ts";

storeLifeSuite("sqlite", openFreshSqliteStore);
workflowStoreSuite("sqlite", openFreshSqliteStore);
agentStoreSuite("sqlite", openFreshSqliteStore);
executionStoreSuite("sqlite", openFreshSqliteStore);
taskStoreSuite("sqlite", openFreshSqliteStore);
clientStoreSuite("sqlite", openFreshSqliteStore);
pruneSuite("sqlite", openFreshSqliteStore);
recordStoreSuite("sqlite", openFreshSqliteStore);
