import { executionNotFound } from "../../../domain/errors.ts";
import { type Execution, hasEnded } from "../../../domain/execution.ts";
import type { ExecutionDraft, ExecutionStore, Page, QueueLine } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import { Touches } from "../ledger.ts";
import type { RequestScope, Requests } from "../requests.ts";
import type { ExecutionContent } from "./execution-content.ts";
import { executionCounter } from "./execution-counters.ts";
import { createLines, type LineNeeds, type Lines } from "./execution-lines.ts";
import type { Moves } from "./execution-moves.ts";
import { type ExecutionRow, type ExecutionRows, toExecution } from "./execution-rows.ts";

/** What executions need of the other parts. */
export interface ExecutionNeeds extends LineNeeds {
  readonly rows: ExecutionRows;
  readonly content: ExecutionContent;
  readonly moves: Moves;
  readonly requests: Requests;
}

export function createExecutionStore(
  context: SqliteContext,
  needs: ExecutionNeeds,
): ExecutionStore {
  const { writer } = context;
  const { rows, moves } = needs;
  const views = createViews(needs);
  const lines = createLines(context, needs);
  const create = createCreate(needs, lines);
  const list = createList(context, needs, { lines, views });

  function requireRow(owner: string, id: string): ExecutionRow {
    const row = rows.findOwn.get({ owner, id });
    if (row === undefined) throw executionNotFound(id);
    return row;
  }

  return {
    createExecution: (owner, draft) =>
      writer.write(() => {
        const touched = new Touches();
        const { id, replayed } = create(owner, draft, touched);
        const row = requireRow(owner, id);
        return { result: { execution: views.whole(row), line: lineOf(row), replayed }, touched };
      }),

    getExecution: (owner, id) => writer.read(() => views.whole(requireRow(owner, id))),

    getLine: (owner, id) =>
      writer.read(() => {
        const row = requireRow(owner, id);
        return hasEnded(row.status) ? null : lineOf(row);
      }),

    listExecutions: (owner, query) => writer.read(() => list(owner, query)),

    cancelExecution: (owner, id) =>
      writer.write(() => {
        const touched = new Touches();
        const row = requireRow(owner, id);
        if (row.status === "queued") moves.end(row, { status: "cancelled" }, touched);
        else if (row.status === "running" && row.cancelUs === null) moves.askCancel(row, touched);
        return { result: views.whole(requireRow(owner, id)), touched };
      }),
  };
}

function lineOf({ routeOwner, route, dueUs }: ExecutionRow): QueueLine {
  return { owner: routeOwner, route, dueUs };
}

/** Queues, unless the same request did before. */
function createCreate({ requests, moves, content }: ExecutionNeeds, lines: Lines) {
  return (
    owner: string,
    draft: ExecutionDraft,
    touches: Touches,
  ): { readonly id: string; readonly replayed: boolean } => {
    const { id, workflowId } = draft;
    // Even a repeated request finds no workflow that was deleted since.
    const runnable = workflowId === null ? null : lines.requireWorkflow(owner, workflowId);
    const scope = scopeOf(owner, draft);
    const known = requests.find(scope, draft.request);
    if (known !== null) return { id: known, replayed: true };
    moves.queue(
      {
        id,
        owner,
        workflowId: workflowId ?? "",
        line: lines.choose(owner, draft, runnable),
        timeoutUs: draft.timeoutUs,
        startTimeoutUs: draft.startTimeoutUs,
        maxAttempts: draft.maxAttempts,
        atMostOnce: draft.atMostOnce,
      },
      touches,
    );
    content.write({ owner, id }, "input", draft.input);
    requests.keep(scope, draft.request, id);
    return { id, replayed: false };
  };
}

function scopeOf(owner: string, { workflowId, agentId }: ExecutionDraft): RequestScope {
  return workflowId === null
    ? { owner, rpc: "ExecuteAgent", target: agentId }
    : { owner, rpc: "ExecuteWorkflow", target: workflowId };
}

/** Before the first page: newer than anything. */
const beforeAll = { createdUs: Number.MAX_SAFE_INTEGER, id: "" };

type ListQuery = Parameters<ExecutionStore["listExecutions"]>[1];

function createList(
  { ledger }: SqliteContext,
  { rows }: ExecutionNeeds,
  { lines, views }: { readonly lines: Lines; readonly views: Views },
): (owner: string, query: ListQuery) => Page<Execution> {
  return (owner, { workflowId, limit, after }) => {
    lines.requireWorkflow(owner, workflowId);
    const { createdUs, id } = after ?? beforeAll;
    const found = rows.page.all({ workflowId, createdUs, id, limit: limit + 1 });
    return {
      items: found.slice(0, limit).map(views.listed),
      total: ledger.counted(executionCounter(owner, workflowId)),
      hasMore: found.length > limit,
    };
  };
}

type Views = ReturnType<typeof createViews>;

function createViews({ rows, content }: ExecutionNeeds) {
  const errorText = (row: ExecutionRow) =>
    row.failure === "AGENT_ERROR" ? content.read(row, "error") : "";
  return {
    whole: (row: ExecutionRow): Execution =>
      toExecution(row, {
        output: content.read(row, "output"),
        progress: content.read(row, "progress"),
        errorText: errorText(row),
        keyReleases: rows.keyReleases.all({ id: row.id }),
      }),
    listed: (row: ExecutionRow): Execution =>
      toExecution(row, { output: "", progress: "", errorText: errorText(row), keyReleases: [] }),
  };
}
