import { Code } from "@connectrpc/connect";
import type { Reason } from "../domain/errors.ts";

/** How a reason looks on each wire. The reason decides where two share a code. */
export interface WireError {
  readonly code: Code;
  readonly status: number;
}

/** The only place that maps a reason; a reason without a row does not compile. */
export const wireErrors = {
  UNAUTHORIZED: { code: Code.Unauthenticated, status: 401 },
  FORBIDDEN: { code: Code.PermissionDenied, status: 403 },
  WORKFLOW_NOT_FOUND: { code: Code.NotFound, status: 404 },
  AGENT_NOT_FOUND: { code: Code.NotFound, status: 404 },
  EXECUTION_NOT_FOUND: { code: Code.NotFound, status: 404 },
  TASK_NOT_FOUND: { code: Code.NotFound, status: 404 },
  ROUTE_NOT_FOUND: { code: Code.Unimplemented, status: 404 },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, status: 405 },
  UNSUPPORTED_MEDIA_TYPE: { code: Code.Unimplemented, status: 415 },
  VALIDATION_ERROR: { code: Code.InvalidArgument, status: 400 },
  PAYLOAD_TOO_LARGE: { code: Code.ResourceExhausted, status: 413 },
  AGENT_ID_TAKEN: { code: Code.AlreadyExists, status: 409 },
  IDEMPOTENCY_CONFLICT: { code: Code.AlreadyExists, status: 409 },
  WORKFLOW_ACTIVE: { code: Code.FailedPrecondition, status: 409 },
  LEASE_LOST: { code: Code.Aborted, status: 409 },
  SYNC_CONFLICT: { code: Code.Aborted, status: 409 },
  SYNC_CURSOR_AHEAD: { code: Code.OutOfRange, status: 409 },
  TASK_TIMED_OUT: { code: Code.DeadlineExceeded, status: 504 },
  DEADLINE_EXCEEDED: { code: Code.DeadlineExceeded, status: 504 },
  CANCELLED: { code: Code.Canceled, status: 499 },
  RATE_LIMITED: { code: Code.ResourceExhausted, status: 429 },
  QUEUE_FULL: { code: Code.ResourceExhausted, status: 429 },
  SLOW_CONSUMER: { code: Code.ResourceExhausted, status: 429 },
  UNAVAILABLE: { code: Code.Unavailable, status: 503 },
  INTERNAL_ERROR: { code: Code.Internal, status: 500 },
} as const satisfies Record<Reason, WireError>;
