import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type PushResultSchema,
  PushStatus,
  SyncConflictReason,
  type SyncRecordSchema,
} from "../../gen/sealflow/v1/record_pb.ts";
import { type LifecycleChangeSchema, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import type { Agent } from "../domain/agent.ts";
import type { Execution } from "../domain/execution.ts";
import type {
  ChangeKind,
  ConflictReason,
  LifecycleChange,
  PushOutcome,
  PushStatus as PushWord,
  SyncRecord,
} from "../domain/record.ts";
import type { Workflow } from "../domain/workflow.ts";
import { agentStatuses, executionStatuses, toTimestamp, workflowStatuses } from "./messages.ts";

type RecordMessage = MessageInitShape<typeof SyncRecordSchema>;

export const pushStatuses = {
  created: PushStatus.CREATED,
  updated: PushStatus.UPDATED,
  deleted: PushStatus.DELETED,
  unchanged: PushStatus.UNCHANGED,
  conflict: PushStatus.CONFLICT,
} as const satisfies Record<PushWord, PushStatus>;

export const conflictReasons = {
  STALE_VERSION: SyncConflictReason.STALE_VERSION,
  SAME_VERSION: SyncConflictReason.SAME_VERSION,
  REVISION_MISMATCH: SyncConflictReason.REVISION_MISMATCH,
  MUTATION_REUSED: SyncConflictReason.MUTATION_REUSED,
} as const satisfies Record<ConflictReason, SyncConflictReason>;

export const changeKinds = {
  workflow: UpdateKind.WORKFLOW,
  execution: UpdateKind.EXECUTION,
  agent: UpdateKind.AGENT,
} as const satisfies Record<ChangeKind, UpdateKind>;

export function toRecord(record: SyncRecord): RecordMessage {
  return { ...toRecordWithoutData(record), encryptedData: record.encryptedData };
}

/** As answers to a push and errors show it: the client has the data, or pulls it. */
export function toRecordWithoutData(record: SyncRecord): RecordMessage {
  return {
    type: record.type,
    entityId: record.entityId,
    version: record.version,
    deleted: record.deleted,
    revision: BigInt(record.revision),
    cursor: BigInt(record.cursor),
    agentId: record.agentId,
    createdAt: toTimestamp(record.createdUs),
    updatedAt: toTimestamp(record.updatedUs),
  };
}

/** A record whose data is there if it has at most so many bytes, else `data_omitted`. */
export function toRecordWithin(record: SyncRecord, bytesMax: number): RecordMessage {
  return Buffer.byteLength(record.encryptedData) <= bytesMax
    ? toRecord(record)
    : { ...toRecordWithoutData(record), dataOmitted: true };
}

/** The results of a batch. */
export function toPushResults(
  outcomes: readonly PushOutcome[],
): MessageInitShape<typeof PushResultSchema>[] {
  return outcomes.map((outcome) => {
    if (outcome.status !== "conflict") {
      const { status, record } = outcome;
      return { status: pushStatuses[status], record: toRecordWithoutData(record) };
    }
    const { reason, current, dataOmitted = false } = outcome;
    const result = { status: PushStatus.CONFLICT, reason: conflictReasons[reason] };
    if (current === null) return result;
    if (dataOmitted)
      return { ...result, current: { ...toRecordWithoutData(current), dataOmitted } };
    return { ...result, current: toRecord(current) };
  });
}

export function toChange(change: LifecycleChange): MessageInitShape<typeof LifecycleChangeSchema> {
  return {
    kind: changeKinds[change.kind],
    id: change.id,
    workflowId: change.workflowId,
    agentId: change.agentId,
    ...(change.deleted ? {} : { status: toStatus(change) }),
    deleted: change.deleted,
    time: toTimestamp(change.timeUs),
  };
}

function toStatus({ kind, status }: LifecycleChange) {
  switch (kind) {
    case "workflow":
      return {
        case: "workflowStatus",
        value: workflowStatuses[status as Workflow["status"]],
      } as const;
    case "execution":
      return {
        case: "executionStatus",
        value: executionStatuses[status as Execution["status"]],
      } as const;
    case "agent":
      return { case: "agentStatus", value: agentStatuses[status as Agent["status"]] } as const;
  }
}
