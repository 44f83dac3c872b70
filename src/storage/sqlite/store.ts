import type { Database } from "better-sqlite3";
import type { Clock } from "../../domain/clock.ts";
import type { Store } from "../port.ts";
import type { Sealer } from "../sealing.ts";
import { createAgentNames } from "./agents/agent-names.ts";
import { createAgentStore } from "./agents/agents.ts";
import { createClientStore } from "./clients.ts";
import { openDrizzle } from "./compiled-session.ts";
import type { SqliteContext } from "./context.ts";
import { createMoves } from "./executions/create-moves.ts";
import { createExecutionContent } from "./executions/execution-content.ts";
import { createExecutionRows } from "./executions/execution-rows.ts";
import { createExecutionStore } from "./executions/executions.ts";
import { createLeases } from "./executions/leases.ts";
import { createQueue } from "./executions/queue.ts";
import { createRuns } from "./executions/runs.ts";
import { Checkpoints } from "./file/checkpoints.ts";
import { createLedger } from "./ledger.ts";
import { createPrune } from "./prune.ts";
import { createRecordStore } from "./records/records.ts";
import { createRequests } from "./requests.ts";
import { createTakers } from "./tasks/takers.ts";
import { createTaskStore } from "./tasks/tasks.ts";
import { createWorkflowStore } from "./workflows/workflows.ts";
import { createWriter } from "./writer.ts";

export interface SqliteStoreParts {
  /** Set up, migrated, and closed by the store. */
  readonly connection: Database;
  /** Given back last; undefined beside a running server. */
  readonly lock: Disposable | undefined;
  readonly epoch: string;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly executionKeptUs: number;
  newToken(): string;
}

export function createSqliteStore(parts: SqliteStoreParts): Store {
  const { connection, clock, sealer, newToken } = parts;
  const db = openDrizzle(connection);
  // A command beside a running server leaves the log to it.
  const checkpoints = parts.lock === undefined ? undefined : new Checkpoints(connection);
  const writer = createWriter(connection, () => checkpoints?.committed());
  const ledger = createLedger(db, clock);
  const context: SqliteContext = { db, writer, ledger, clock, sealer, newToken };
  const names = createAgentNames(db);
  const requests = createRequests(db);
  const rows = createExecutionRows(db);
  const moves = createMoves(context);
  const runs = createRuns(rows, moves);
  const leases = createLeases(context, { rows, moves });
  const content = createExecutionContent(context);
  const shared = { rows, moves, content, queue: createQueue(context), takers: createTakers(db) };
  return {
    workflows: createWorkflowStore(context, { names, requests, cancelRunsOf: runs.cancelRunsOf }),
    agents: createAgentStore(context, { names, loseLeasesOf: leases.loseLeasesOf }),
    executions: createExecutionStore(context, { ...shared, names, requests }),
    tasks: createTaskStore(context, { ...shared, leases }),
    records: createRecordStore(context),
    clients: createClientStore(context),
    epoch: parts.epoch,
    fingerprint: (content) => sealer.fingerprint(content),
    isWritable: () => writer.isWritable(),
    failed: writer.failed,
    prune: createPrune(context, parts.executionKeptUs),
    async [Symbol.asyncDispose]() {
      await writer.close();
      await checkpoints?.[Symbol.asyncDispose]();
      connection.close();
      parts.lock?.[Symbol.dispose]();
    },
  };
}
