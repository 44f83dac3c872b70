import type { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import { WorkflowStatus } from "../../gen/sealflow/v1/workflow_pb.ts";
import type { Execution } from "../domain/execution.ts";
import { limits, spans } from "../domain/limits.ts";
import { capabilitySet, type WorkflowStatus as WorkflowWord } from "../domain/workflow.ts";
import type { WorkflowChanges } from "../storage/port.ts";
import type { Handlers, ServiceParts } from "./call.ts";
import { awaitEnd, execute, waitMs } from "./execute.ts";
import { toExecutionResult, toWorkflow } from "./messages.ts";
import { pageSize, readPageToken, writePageToken } from "./page-token.ts";
import { requestKey } from "./request-key.ts";
import { explainWaiting } from "./waiting.ts";

/** Workflows and their executions. Each method: check, act, announce, answer. */
export function workflowHandlers(parts: ServiceParts): Handlers<typeof WorkflowService> {
  const { store, wakeups } = parts;
  return {
    async getWorkflow({ id }, { owner }) {
      return toWorkflow(await store.workflows.getWorkflow(owner, id));
    },

    async listWorkflows({ status, limit, pageToken }, { owner }) {
      const word = statusWords[status];
      const filter = `workflows ${word ?? ""}`;
      const after = readPageToken(filter, pageToken);
      const page = await store.workflows.listWorkflows(owner, {
        limit: pageSize(limit, limits.workflowPageSize),
        ...(word === undefined ? {} : { status: word }),
        ...(after === undefined ? {} : { after }),
      });
      const last = page.hasMore ? page.items.at(-1) : undefined;
      return {
        workflows: page.items.map(toWorkflow),
        total: page.total,
        hasMore: page.hasMore,
        nextPageToken: last === undefined ? "" : writePageToken(filter, last),
      };
    },

    async createWorkflow(request, call) {
      const { name, description, encryptedData, encryptionKey, agentId, allowPublic } = request;
      const requiredCapabilities = capabilitySet(request.requiredCapabilities);
      const { result, touched } = await store.workflows.createWorkflow(call.owner, {
        id: parts.newId("wf"),
        name,
        description,
        encryptedData,
        encryptionKey,
        agentId,
        allowPublic,
        requiredCapabilities,
        ...requestKey(store, call, {
          requestId: request.requestId,
          content: [
            [name, description, encryptedData, encryptionKey],
            [agentId, allowPublic, requiredCapabilities],
          ],
        }),
      });
      wakeups.announce(touched);
      call.outcome.created = !result.replayed;
      return toWorkflow(result.workflow);
    },

    async executeWorkflow(request, call) {
      const { id: workflowId, agentId, allowPublic } = request;
      const target = { workflowId, agentId, allowPublic };
      const { execution, notes } = await execute(parts, call, { target, request });
      return toExecutionResult(withoutReleases(execution), notes);
    },

    async updateWorkflow(request, { owner }) {
      const changes = changesOf(request);
      const { result, touched } = await store.workflows.updateWorkflow(owner, request.id, changes);
      wakeups.announce(touched);
      return toWorkflow(result);
    },

    async deleteWorkflow({ id }, { owner }) {
      const { touched } = await store.workflows.deleteWorkflow(owner, id);
      wakeups.announce(touched);
      return {};
    },

    async getExecution({ id, wait }, call) {
      const found = await store.executions.getExecution(call.owner, id);
      const ms = waitMs(wait, spans.executeWaitMaxMs) ?? 0;
      const execution = await awaitEnd(parts, call, { execution: found, ms });
      return toExecutionResult(execution, await explainWaiting(parts, call, execution));
    },

    async listExecutions({ workflowId, limit, pageToken }, { owner }) {
      const filter = `executions ${workflowId}`;
      const after = readPageToken(filter, pageToken);
      const page = await store.executions.listExecutions(owner, {
        workflowId,
        limit: pageSize(limit, limits.executionPageSize),
        ...(after === undefined ? {} : { after }),
      });
      const last = page.hasMore ? page.items.at(-1) : undefined;
      return {
        executions: page.items.map((execution) => toExecutionResult(execution)),
        total: page.total,
        hasMore: page.hasMore,
        nextPageToken: last === undefined ? "" : writePageToken(filter, last),
      };
    },

    async cancelExecution({ id }, { owner }) {
      const { result, touched } = await store.executions.cancelExecution(owner, id);
      wakeups.announce(touched);
      return toExecutionResult(withoutReleases(result));
    },
  };
}

const statusWords: Record<WorkflowStatus, WorkflowWord | undefined> = {
  [WorkflowStatus.UNSPECIFIED]: undefined,
  [WorkflowStatus.DRAFT]: "draft",
  [WorkflowStatus.RUNNING]: "running",
  [WorkflowStatus.COMPLETED]: "completed",
  [WorkflowStatus.FAILED]: "failed",
};

type UpdateRequest = Parameters<Handlers<typeof WorkflowService>["updateWorkflow"]>[0];

function changesOf(request: UpdateRequest): WorkflowChanges {
  const { name, description, encryptedData, encryptionKey, agentId, allowPublic } = request;
  const capabilities = request.requiredCapabilities?.names;
  return {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(encryptedData === undefined ? {} : { encryptedData }),
    ...(encryptionKey === undefined ? {} : { encryptionKey }),
    ...(agentId === undefined ? {} : { agentId }),
    ...(allowPublic === undefined ? {} : { allowPublic }),
    ...(capabilities === undefined ? {} : { requiredCapabilities: capabilitySet(capabilities) }),
  };
}

/** GetExecution alone shows who was handed the key. */
function withoutReleases(execution: Execution): Execution {
  return { ...execution, keyReleases: [] };
}
