import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Agent, AgentStatus } from "../../../gen/sealflow/v1/agent_pb.ts";
import {
  type ExecutionError,
  type ExecutionResult,
  ExecutionStatus,
  type Waiting,
} from "../../../gen/sealflow/v1/execution_pb.ts";
import {
  type PushResult,
  PushStatus,
  SyncConflictReason,
  SyncConflictReasonSchema,
  type SyncRecord,
} from "../../../gen/sealflow/v1/record_pb.ts";
import {
  GoingAwayReason,
  GoingAwayReasonSchema,
  type LifecycleChange,
  type SyncUpdate,
  type UpdateKind,
  UpdateKindSchema,
} from "../../../gen/sealflow/v1/sync_pb.ts";
import type { Task } from "../../../gen/sealflow/v1/task_pb.ts";
import { type Workflow, WorkflowStatus } from "../../../gen/sealflow/v1/workflow_pb.ts";
import { isoTime } from "../../domain/iso-time.ts";
import { parseJson } from "../../domain/json-text.ts";
import { durationText } from "./durations.ts";

/** Messages of the contract as REST shows them. A member that is undefined is not shown. */
export type View = Readonly<Record<string, unknown>>;

const workflowWords: Readonly<Record<WorkflowStatus, string>> = {
  [WorkflowStatus.UNSPECIFIED]: "",
  [WorkflowStatus.DRAFT]: "pending",
  [WorkflowStatus.RUNNING]: "running",
  [WorkflowStatus.COMPLETED]: "completed",
  [WorkflowStatus.FAILED]: "failed",
};

const agentWords: Readonly<Record<AgentStatus, string>> = {
  [AgentStatus.UNSPECIFIED]: "",
  [AgentStatus.ACTIVE]: "active",
  [AgentStatus.INACTIVE]: "inactive",
};

const executionWords: Readonly<Record<ExecutionStatus, string>> = {
  [ExecutionStatus.UNSPECIFIED]: "",
  [ExecutionStatus.QUEUED]: "pending",
  [ExecutionStatus.RUNNING]: "running",
  [ExecutionStatus.COMPLETED]: "completed",
  [ExecutionStatus.FAILED]: "failed",
  [ExecutionStatus.CANCELLED]: "cancelled",
  [ExecutionStatus.TIMED_OUT]: "timed_out",
};

const pushWords: Readonly<Record<PushStatus, string>> = {
  [PushStatus.UNSPECIFIED]: "",
  [PushStatus.CREATED]: "created",
  [PushStatus.UPDATED]: "updated",
  [PushStatus.DELETED]: "deleted",
  [PushStatus.UNCHANGED]: "unchanged",
  [PushStatus.CONFLICT]: "conflict",
};

export function workflowView(workflow: Workflow): View {
  return {
    id: workflow.id,
    name: workflow.name,
    description: workflow.description,
    status: workflowWords[workflow.status],
    encryptedData: workflow.encryptedData,
    agentId: unlessEmpty(workflow.agentId),
    allowPublic: workflow.allowPublic || undefined,
    requiredCapabilities: workflow.requiredCapabilities,
    createdAt: time(workflow.createdAt),
    updatedAt: time(workflow.updatedAt),
  };
}

/** The form of a list: no more than the four fields that clients know. */
export function workflowItemView(workflow: Workflow): View {
  return {
    id: workflow.id,
    name: workflow.name,
    status: workflowWords[workflow.status],
    createdAt: time(workflow.createdAt),
  };
}

export function agentView(agent: Agent): View {
  return {
    id: agent.id,
    type: agent.type,
    name: agent.name,
    capabilities: agent.capabilities,
    status: agentWords[agent.status],
    isPublic: agent.isPublic,
    registeredAt: time(agent.registeredAt),
    lastSeenAt: time(agent.lastSeenAt),
  };
}

type OfExecutionResult = "workflowId" | "keyReleases" | "waiting";

/** An ExecutionResult, or an AgentResult, which has the same fields but three. */
export function executionView(
  execution: Omit<ExecutionResult, "$typeName" | OfExecutionResult> &
    Partial<Pick<ExecutionResult, OfExecutionResult>>,
): View {
  const releases = execution.keyReleases ?? [];
  return {
    executionId: execution.executionId,
    workflowId: unlessEmpty(execution.workflowId ?? ""),
    agentId: unlessEmpty(execution.agentId),
    status: executionWords[execution.status],
    output: jsonValue(execution.output),
    error: execution.error === undefined ? undefined : errorView(execution.error),
    attempt: execution.attempt,
    progress: unlessEmpty(execution.progress),
    keyReleases:
      releases.length === 0
        ? undefined
        : releases.map(({ agentId, attempt, time: at }) => ({ agentId, attempt, time: time(at) })),
    createdAt: time(execution.createdAt),
    startedAt: time(execution.startedAt),
    finishedAt: time(execution.finishedAt),
    replayed: execution.replayed || undefined,
    hint: unlessEmpty(execution.hint),
    waiting: execution.waiting && waitingView(execution.waiting),
  };
}

function waitingView({ dueIn, requiredCapabilities, agents, truncated }: Waiting): View {
  return {
    dueIn: dueIn && durationText(dueIn),
    requiredCapabilities,
    agents: agents.map(({ agentId, listening, lastSeenAt, missingCapabilities }) => ({
      agentId,
      listening,
      lastSeenAt: time(lastSeenAt),
      missingCapabilities,
    })),
    truncated: truncated || undefined,
  };
}

function errorView({ code, message }: ExecutionError): View {
  return { code, message };
}

export function taskView(task: Task): View {
  return {
    id: task.id,
    workflowId: unlessEmpty(task.workflowId),
    attempt: task.attempt,
    leaseToken: task.leaseToken,
    lease: task.lease && durationText(task.lease),
    timeLeft: task.timeLeft && durationText(task.timeLeft),
    name: unlessEmpty(task.name),
    input: jsonValue(task.input),
    encryptedData: unlessEmpty(task.encryptedData),
    encryptionKey: unlessEmpty(task.encryptionKey),
    progress: unlessEmpty(task.progress),
  };
}

export function recordView(record: SyncRecord): View {
  return { ...recordHeadView(record), encryptedData: record.encryptedData };
}

/** A record without its data, or with the word that it was left out. */
export function recordHeadView(record: SyncRecord): View {
  return {
    type: record.type,
    entityId: record.entityId,
    encryptedData: unlessEmpty(record.encryptedData),
    version: record.version,
    deleted: record.deleted,
    revision: Number(record.revision),
    cursor: Number(record.cursor),
    agentId: record.agentId,
    createdAt: time(record.createdAt),
    updatedAt: time(record.updatedAt),
    dataOmitted: record.dataOmitted || undefined,
  };
}

export function pushWord(status: PushStatus): string {
  return pushWords[status] ?? "";
}

export function conflictWord(reason: SyncConflictReason): string | undefined {
  if (reason === SyncConflictReason.UNSPECIFIED) return undefined;
  return SyncConflictReasonSchema.value[reason]?.localName;
}

export function pushResultView({ status, record, reason, current }: PushResult): View {
  return {
    status: pushWord(status),
    record: record && recordHeadView(record),
    reason: conflictWord(reason),
    current: current && recordHeadView(current),
  };
}

export function changeView(change: LifecycleChange): View {
  return {
    kind: updateWord(change.kind),
    id: change.id,
    workflowId: unlessEmpty(change.workflowId),
    agentId: unlessEmpty(change.agentId),
    status: statusWord(change),
    deleted: change.deleted,
    time: time(change.time),
  };
}

/** One message of a stream. */
export function updateView(update: SyncUpdate): View {
  return {
    kind: updateWord(update.kind),
    record: update.record && recordView(update.record),
    change: update.change && changeView(update.change),
    cursor: Number(update.cursor),
    prevCursor: Number(update.prevCursor),
    epoch: unlessEmpty(update.epoch),
    reason: goingAwayWord(update.reason),
  };
}

export function updateWord(kind: UpdateKind): string {
  return UpdateKindSchema.value[kind]?.localName.toLowerCase() ?? "";
}

function goingAwayWord(reason: GoingAwayReason): string | undefined {
  if (reason === GoingAwayReason.UNSPECIFIED) return undefined;
  return GoingAwayReasonSchema.value[reason]?.localName.toLowerCase();
}

function statusWord({ status }: LifecycleChange): string | undefined {
  switch (status.case) {
    case "workflowStatus":
      return workflowWords[status.value];
    case "executionStatus":
      return executionWords[status.value];
    case "agentStatus":
      return agentWords[status.value];
    case undefined:
      return undefined;
  }
}

export function time(timestamp: Timestamp | undefined): string | undefined {
  if (timestamp === undefined) return undefined;
  return isoTime(Number(timestamp.seconds) * 1000 + Math.floor(timestamp.nanos / 1e6));
}

function unlessEmpty(text: string): string | undefined {
  return text === "" ? undefined : text;
}

/** JSON text of a message is a JSON value here. */
function jsonValue(text: string): unknown {
  return text === "" ? undefined : parseJson(text);
}
