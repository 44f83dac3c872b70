import type { PushConflict } from "./record.ts";

/**
 * The closed set of reasons a call can fail with. The contract (errors.proto) holds each one's
 * meaning; calls/wire.ts maps each to a gRPC code and an HTTP status.
 */
export type Reason =
  | "UNAUTHORIZED"
  | "FORBIDDEN"
  | "WORKFLOW_NOT_FOUND"
  | "AGENT_NOT_FOUND"
  | "EXECUTION_NOT_FOUND"
  | "TASK_NOT_FOUND"
  | "ROUTE_NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "VALIDATION_ERROR"
  | "PAYLOAD_TOO_LARGE"
  | "AGENT_ID_TAKEN"
  | "IDEMPOTENCY_CONFLICT"
  | "WORKFLOW_ACTIVE"
  | "LEASE_LOST"
  | "SYNC_CONFLICT"
  | "SYNC_CURSOR_AHEAD"
  | "TASK_TIMED_OUT"
  | "DEADLINE_EXCEEDED"
  | "CANCELLED"
  | "RATE_LIMITED"
  | "QUEUE_FULL"
  | "SLOW_CONSUMER"
  | "UNAVAILABLE"
  | "INTERNAL_ERROR";

/** One broken rule of a request: the field's path in the contract's snake_case, and what is wrong. */
export interface FieldViolation {
  readonly field: string;
  readonly message: string;
}

/** What an error says beside its reason and message. */
export interface ErrorFacts {
  /** Named values for programs, e.g. `workflowId`. Keys in camelCase. */
  readonly details?: Readonly<Record<string, string | number>>;
  /** Every broken rule; the wire shows the first 20. */
  readonly fields?: readonly FieldViolation[];
  /** What a push met. */
  readonly conflict?: PushConflict;
  /** When to try again. */
  readonly retryAfterMs?: number;
  /** Headers that only HTTP shows, e.g. `allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log alone; never shown to a client. */
  readonly cause?: unknown;
}

/** The only error that handlers and stores throw. Anything else is a bug: INTERNAL_ERROR. */
export class ServiceError extends Error {
  readonly reason: Reason;
  readonly facts: ErrorFacts;

  constructor(reason: Reason, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = "ServiceError";
    this.reason = reason;
    this.facts = facts;
  }
}

/** A single broken rule as an error. `field` in the contract's snake_case. */
export function invalid(field: string, message: string): ServiceError {
  return new ServiceError("VALIDATION_ERROR", `${field} ${message}`, {
    fields: [{ field, message }],
  });
}

/** No such workflow of this owner. */
export function workflowNotFound(workflowId: string): ServiceError {
  return new ServiceError("WORKFLOW_NOT_FOUND", "Workflow not found", { details: { workflowId } });
}

/** No such agent: neither an own one nor a public one. The text is part of the interface. */
export function agentNotFound(agentId: string): ServiceError {
  return new ServiceError("AGENT_NOT_FOUND", "Agent not found", { details: { agentId } });
}

/** No such execution of this owner. */
export function executionNotFound(executionId: string): ServiceError {
  return new ServiceError("EXECUTION_NOT_FOUND", "Execution not found", {
    details: { executionId },
  });
}

/** A request_id that was used before with other content. */
export function idempotencyConflict(requestId: string): ServiceError {
  return new ServiceError(
    "IDEMPOTENCY_CONFLICT",
    "This request id was used before with other content. Use a new one.",
    { details: { requestId } },
  );
}
