import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type AgentResultSchema,
  type AgentSchema,
  AgentStatus,
} from "../../gen/sealflow/v1/agent_pb.ts";
import {
  type ExecutionErrorSchema,
  ExecutionFailure,
  type ExecutionResultSchema,
  ExecutionStatus,
  type WaitingSchema,
} from "../../gen/sealflow/v1/execution_pb.ts";
import type { TaskSchema } from "../../gen/sealflow/v1/task_pb.ts";
import { type WorkflowSchema, WorkflowStatus } from "../../gen/sealflow/v1/workflow_pb.ts";
import type { Agent } from "../domain/agent.ts";
import type { Execution, ExecutionError, Task } from "../domain/execution.ts";
import type { Workflow } from "../domain/workflow.ts";

/** Domain values as messages of the contract, field by field: a new column reaches no wire alone. */

export const workflowStatuses = {
  draft: WorkflowStatus.DRAFT,
  running: WorkflowStatus.RUNNING,
  completed: WorkflowStatus.COMPLETED,
  failed: WorkflowStatus.FAILED,
} as const satisfies Record<Workflow["status"], WorkflowStatus>;

export const agentStatuses = {
  active: AgentStatus.ACTIVE,
  inactive: AgentStatus.INACTIVE,
} as const satisfies Record<Agent["status"], AgentStatus>;

export const executionStatuses = {
  queued: ExecutionStatus.QUEUED,
  running: ExecutionStatus.RUNNING,
  completed: ExecutionStatus.COMPLETED,
  failed: ExecutionStatus.FAILED,
  cancelled: ExecutionStatus.CANCELLED,
  timed_out: ExecutionStatus.TIMED_OUT,
} as const satisfies Record<Execution["status"], ExecutionStatus>;

const failures = {
  AGENT_ERROR: ExecutionFailure.AGENT_ERROR,
  AGENT_LOST: ExecutionFailure.AGENT_LOST,
  OUTCOME_UNKNOWN: ExecutionFailure.OUTCOME_UNKNOWN,
  SCHEDULE_TO_START: ExecutionFailure.SCHEDULE_TO_START,
  EXECUTION: ExecutionFailure.EXECUTION,
} as const satisfies Record<ExecutionError["failure"], ExecutionFailure>;

export function toWorkflow(workflow: Workflow): MessageInitShape<typeof WorkflowSchema> {
  return {
    id: workflow.id,
    name: workflow.name,
    description: workflow.description,
    status: workflowStatuses[workflow.status],
    encryptedData: workflow.encryptedData,
    createdAt: toTimestamp(workflow.createdUs),
    updatedAt: toTimestamp(workflow.updatedUs),
    agentId: workflow.agentId,
    allowPublic: workflow.allowPublic,
    requiredCapabilities: [...workflow.requiredCapabilities],
  };
}

export function toAgent(agent: Agent): MessageInitShape<typeof AgentSchema> {
  return {
    id: agent.id,
    name: agent.name,
    capabilities: [...agent.capabilities],
    status: agentStatuses[agent.status],
    isPublic: agent.isPublic,
    type: agent.type,
    registeredAt: toTimestamp(agent.registeredUs),
    lastSeenAt: toTimestamp(agent.lastSeenUs),
  };
}

/** What an answer says of an execution beside the execution. */
export interface ExecutionNotes {
  readonly replayed?: boolean;
  readonly hint?: string;
  /** Why it waits; GetExecution alone says so. */
  readonly waiting?: MessageInitShape<typeof WaitingSchema>;
}

export function toExecutionResult(
  execution: Execution,
  { replayed = false, hint = "", waiting }: ExecutionNotes = {},
): MessageInitShape<typeof ExecutionResultSchema> {
  return {
    executionId: execution.id,
    workflowId: execution.workflowId,
    agentId: execution.agentId,
    status: executionStatuses[execution.status],
    output: execution.output,
    ...(execution.error === null ? {} : { error: toExecutionError(execution.error) }),
    attempt: execution.attempt,
    progress: execution.progress,
    keyReleases: execution.keyReleases.map(({ agentId, attempt, timeUs }) => ({
      agentId,
      attempt,
      time: toTimestamp(timeUs),
    })),
    ...toExecutionTimes(execution),
    replayed,
    hint,
    ...(waiting === undefined ? {} : { waiting }),
  };
}

export function toAgentResult(
  execution: Execution,
  { replayed = false, hint = "" }: ExecutionNotes = {},
): MessageInitShape<typeof AgentResultSchema> {
  return {
    executionId: execution.id,
    agentId: execution.agentId,
    status: executionStatuses[execution.status],
    output: execution.output,
    ...(execution.error === null ? {} : { error: toExecutionError(execution.error) }),
    attempt: execution.attempt,
    progress: execution.progress,
    ...toExecutionTimes(execution),
    replayed,
    hint,
  };
}

function toExecutionTimes({ createdUs, startedUs, finishedUs }: Execution) {
  return {
    createdAt: toTimestamp(createdUs),
    ...(startedUs === null ? {} : { startedAt: toTimestamp(startedUs) }),
    ...(finishedUs === null ? {} : { finishedAt: toTimestamp(finishedUs) }),
  };
}

function toExecutionError(error: ExecutionError): MessageInitShape<typeof ExecutionErrorSchema> {
  return { failure: failures[error.failure], code: error.code, message: error.message };
}

export function toTask(task: Task): MessageInitShape<typeof TaskSchema> {
  return {
    id: task.id,
    workflowId: task.workflowId,
    attempt: task.attempt,
    leaseToken: task.leaseToken,
    lease: toDuration(task.leaseUs),
    timeLeft: toDuration(task.timeLeftUs),
    name: task.name,
    input: task.input,
    encryptedData: task.encryptedData,
    encryptionKey: task.encryptionKey,
    progress: task.progress,
  };
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

export function toTimestamp(us: number): Plain<Timestamp> {
  const seconds = Math.floor(us / 1e6);
  return { seconds: BigInt(seconds), nanos: (us - seconds * 1e6) * 1000 };
}

export function toDuration(us: number): Plain<Duration> {
  const left = Math.max(0, us);
  const seconds = Math.floor(left / 1e6);
  return { seconds: BigInt(seconds), nanos: (left - seconds * 1e6) * 1000 };
}

/** A duration of a request in microseconds; undefined when there is none, `max` above it. */
export function fromDuration(
  duration: Plain<Duration> | undefined,
  max: number,
): number | undefined {
  if (duration === undefined) return undefined;
  return Math.min(Number(duration.seconds) * 1e6 + Math.floor(duration.nanos / 1000), max);
}
