import type { Duration } from "@bufbuild/protobuf/wkt";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.ts";
import {
  ErrorReason,
  type SyncConflict,
  SyncConflictSchema,
} from "../../gen/sealflow/v1/errors_pb.ts";

/** The name of a reason, e.g. `WORKFLOW_NOT_FOUND`. The contract (errors.proto) explains each. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** Why a call failed, as far as a program needs to know. */
export interface FailedCall {
  readonly reason: Reason;
  /** Named values, e.g. `workflowId`. */
  readonly details: Readonly<Record<string, string>>;
  /** With VALIDATION_ERROR: every broken rule, up to 20. Fields in snake_case. */
  readonly fields: readonly { readonly field: string; readonly message: string }[];
  /** With SYNC_CONFLICT: what the server has. */
  readonly conflict: SyncConflict | undefined;
  /** When to try again, if the server says so. */
  readonly retryAfterMs: number | undefined;
}

/**
 * Reads what the service says about a failed call. Undefined when the service did not say it: the
 * network failed, the call was aborted, or something between answered.
 */
export function reasonOf(error: unknown): FailedCall | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "sealflow");
  if (info === undefined || !isReason(info.reason)) return undefined;
  const violations = error.findDetails(BadRequestSchema)[0]?.fieldViolations ?? [];
  return {
    reason: info.reason,
    details: info.metadata,
    fields: violations.map(({ field, description }) => ({ field, message: description })),
    conflict: error.findDetails(SyncConflictSchema)[0],
    retryAfterMs: milliseconds(error.findDetails(RetryInfoSchema)[0]?.retryDelay),
  };
}

function isReason(name: string): name is Reason {
  return name !== "UNSPECIFIED" && Object.hasOwn(ErrorReason, name);
}

function milliseconds(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration);
}
