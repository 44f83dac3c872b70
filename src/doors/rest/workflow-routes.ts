import { WorkflowService, WorkflowStatus } from "../../../gen/sealflow/v1/workflow_pb.ts";
import type { Outcome } from "../../services/call.ts";
import type { Asked, Told } from "./route.ts";
import { noContent, ok, route } from "./route.ts";
import { executionView, type View, workflowItemView, workflowView } from "./views.ts";
import { readWord } from "./words.ts";

const rpc = WorkflowService.method;

const statuses: Readonly<Record<string, WorkflowStatus>> = {
  pending: WorkflowStatus.DRAFT,
  draft: WorkflowStatus.DRAFT,
  running: WorkflowStatus.RUNNING,
  completed: WorkflowStatus.COMPLETED,
  failed: WorkflowStatus.FAILED,
};

export const workflowRoutes = [
  route("GET /workflows", rpc.listWorkflows, {
    ask: ({ query }) => ({
      status: readWord(query, "status", statuses),
      limit: query.whole("limit"),
      pageToken: query.text("pageToken"),
    }),
    tell: ({ workflows, total, hasMore, nextPageToken }) =>
      ok({
        workflows: workflows.map(workflowItemView),
        total,
        hasMore,
        nextPageToken: nextPageToken || undefined,
      }),
  }),

  route("POST /workflows", rpc.createWorkflow, {
    ask: ({ body }) => ({
      name: body.text("name"),
      description: body.text("description"),
      encryptedData: body.text("encryptedData"),
      encryptionKey: body.text("encryptionKey"),
      agentId: body.text("agentId"),
      allowPublic: body.flag("allowPublic"),
      requiredCapabilities: body.texts("requiredCapabilities"),
      requestId: body.text("requestId"),
    }),
    tell: (workflow, { outcome }) =>
      outcome.created === true
        ? {
            status: 201,
            body: workflowView(workflow),
            location: `/api/v1/workflows/${workflow.id}`,
          }
        : ok(workflowView(workflow)),
  }),

  route("GET /workflows/:id", rpc.getWorkflow, {
    ask: ({ params }) => ({ id: params.id }),
    tell: (workflow) => ok(workflowView(workflow)),
  }),

  route("PATCH /workflows/:id", rpc.updateWorkflow, {
    ask: ({ params, body }) => ({
      id: params.id,
      name: body.text("name"),
      description: body.text("description"),
      encryptedData: body.text("encryptedData"),
      encryptionKey: body.text("encryptionKey"),
      agentId: body.text("agentId"),
      allowPublic: body.flag("allowPublic"),
      requiredCapabilities: capabilitySet(body.texts("requiredCapabilities")),
    }),
    tell: (workflow) => ok(workflowView(workflow)),
  }),

  route("DELETE /workflows/:id", rpc.deleteWorkflow, {
    ask: ({ params }) => ({ id: params.id }),
    tell: noContent,
  }),

  route("POST /workflows/:id/execute", rpc.executeWorkflow, {
    ask: (asked) => ({
      id: asked.params.id,
      ...executeFields(asked),
      agentId: asked.body.text("agentId"),
      allowPublic: asked.body.flag("allowPublic"),
    }),
    tell: (execution, { outcome }) => executed(executionView(execution), outcome),
  }),

  route("GET /workflows/:id/executions", rpc.listExecutions, {
    ask: ({ params, query }) => ({
      workflowId: params.id,
      limit: query.whole("limit"),
      pageToken: query.text("pageToken"),
    }),
    tell: ({ executions, total, hasMore, nextPageToken }) =>
      ok({
        executions: executions.map(executionView),
        total,
        hasMore,
        nextPageToken: nextPageToken || undefined,
      }),
  }),

  route("GET /executions/:id", rpc.getExecution, {
    ask: ({ params, query, preferredWait }) => ({
      id: params.id,
      wait: query.duration("wait") ?? preferredWait,
    }),
    tell: (execution) => ok(executionView(execution)),
  }),

  route("POST /executions/:id/cancel", rpc.cancelExecution, {
    ask: ({ params }) => ({ id: params.id }),
    tell: (execution) => ok(executionView(execution)),
  }),
];

/** What both ways to execute take alike. */
export function executeFields({ body, preferredWait }: Asked) {
  return {
    input: body.json("input"),
    wait: body.duration("wait") ?? preferredWait,
    timeout: body.duration("timeout"),
    startTimeout: body.duration("startTimeout"),
    maxAttempts: body.whole("maxAttempts"),
    atMostOnce: body.flag("atMostOnce"),
    requestId: body.text("requestId"),
  };
}

/** Ended: 200. Not yet: 202, and where to follow it. */
export function executed(view: View, { ended }: Outcome): Told {
  if (ended === true) return ok(view);
  return { status: 202, body: view, location: `/api/v1/executions/${String(view.executionId)}` };
}

function capabilitySet(names: string[] | undefined) {
  return names === undefined ? undefined : { names };
}
