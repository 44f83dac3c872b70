import { ServiceError, workflowNotFound } from "../../../domain/errors.ts";
import type { Workflow } from "../../../domain/workflow.ts";
import type { Page, WorkflowQuery, WorkflowStore } from "../../port.ts";
import type { AgentNames } from "../agents/agent-names.ts";
import type { SqliteContext } from "../context.ts";
import { type Ledger, Touches } from "../ledger.ts";
import type { Requests } from "../requests.ts";
import { createWorkflowEdits, workflowCounter } from "./workflow-edits.ts";
import {
  createWorkflowRows,
  toWorkflow,
  type WorkflowRow,
  type WorkflowRows,
} from "./workflow-rows.ts";

/** What workflows need of the other parts; all of it works inside a write. */
export interface WorkflowNeeds {
  readonly names: AgentNames;
  readonly requests: Requests;
  /** Ends the active executions of a workflow as cancelled, without grace. */
  cancelRunsOf(workflowId: string, touches: Touches): void;
}

export function createWorkflowStore(context: SqliteContext, needs: WorkflowNeeds): WorkflowStore {
  const { writer, ledger } = context;
  const rows = createWorkflowRows(context.db);
  const edits = createWorkflowEdits(context, needs.names, rows);

  function requireRow(owner: string, id: string): WorkflowRow {
    const row = rows.read.get({ owner, id });
    if (row === undefined) throw workflowNotFound(id);
    return row;
  }

  function readWhole(owner: string, id: string): Workflow {
    return toWorkflow(requireRow(owner, id), rows.readData.get({ id })?.encryptedData ?? "");
  }

  return {
    createWorkflow: (owner, draft) =>
      writer.write(() => {
        const scope = { owner, rpc: "CreateWorkflow", target: "" };
        const touched = new Touches();
        const known = needs.requests.find(scope, draft.request);
        if (known !== null) {
          return { result: { workflow: readWhole(owner, known), replayed: true }, touched };
        }
        edits.insert(owner, draft);
        needs.requests.keep(scope, draft.request, draft.id);
        touched.feed(owner);
        return { result: { workflow: readWhole(owner, draft.id), replayed: false }, touched };
      }),

    getWorkflow: (owner, id) => writer.read(() => readWhole(owner, id)),

    listWorkflows: (owner, query) => writer.read(() => readPage(owner, query, { rows, ledger })),

    updateWorkflow: (owner, id, changes) =>
      writer.write(() => {
        const row = requireRow(owner, id);
        if (row.runsStarted + row.runsWaiting > 0) throw workflowActive(id);
        edits.update(owner, row, changes);
        return { result: readWhole(owner, id), touched: new Touches().feed(owner) };
      }),

    deleteWorkflow: (owner, id) =>
      writer.write(() => {
        requireRow(owner, id);
        const touched = new Touches();
        needs.cancelRunsOf(id, touched);
        // Read anew: the end of its executions has moved its status.
        edits.erase(owner, requireRow(owner, id));
        return { result: undefined, touched: touched.feed(owner) };
      }),
  };
}

/** Before the first page: newer than anything. */
const beforeAll = { createdUs: Number.MAX_SAFE_INTEGER, id: "" };

function readPage(
  owner: string,
  query: WorkflowQuery,
  { rows, ledger }: { readonly rows: WorkflowRows; readonly ledger: Ledger },
): Page<Workflow> {
  const { status, limit } = query;
  const { createdUs, id } = query.after ?? beforeAll;
  const place = { owner, createdUs, id, limit: limit + 1 };
  const found =
    status === undefined ? rows.page.all(place) : rows.pageOfStatus.all({ ...place, status });
  const kind = workflowCounter;
  return {
    items: found.slice(0, limit).map((row) => toWorkflow(row, "")),
    total:
      status === undefined ? ledger.total(owner, kind) : ledger.counted({ owner, kind, status }),
    hasMore: found.length > limit,
  };
}

function workflowActive(workflowId: string): ServiceError {
  return new ServiceError(
    "WORKFLOW_ACTIVE",
    "The workflow has an execution that has not ended. Wait for it, or cancel it.",
    { details: { workflowId } },
  );
}
