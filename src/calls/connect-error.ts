import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.ts";
import { SyncConflictSchema } from "../../gen/sealflow/v1/errors_pb.ts";
import type { ServiceError } from "../domain/errors.ts";
import { toDuration } from "../services/messages.ts";
import { retryAfterSeconds, shownDetails } from "./error-details.ts";
import { wireErrors } from "./wire.ts";

/** The domain of every google.rpc.ErrorInfo of this service. */
const errorDomain = "sealflow";

/** An error as gRPC, gRPC-Web and Connect carry it: code, text, and the reason in the details. */
export function toConnectError(error: ServiceError): ConnectError {
  const { metadata, fields, isTruncated, conflict } = shownDetails(error);
  const info = create(ErrorInfoSchema, {
    reason: error.reason,
    domain: errorDomain,
    metadata: {
      ...Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, String(value)])),
      ...(isTruncated ? { truncated: "true" } : {}),
    },
  });
  const { retryAfterMs, headers } = error.facts;
  const result = new ConnectError(
    error.message.toWellFormed(),
    wireErrors[error.reason].code,
    headers,
    [{ desc: ErrorInfoSchema, value: info }],
    error.facts.cause,
  );
  if (retryAfterMs !== undefined) {
    const value = { retryDelay: toDuration(retryAfterMs * 1000) };
    result.details.push({ desc: RetryInfoSchema, value });
    result.metadata.set("retry-after", retryAfterSeconds(error) ?? "");
  }
  if (fields.length > 0) {
    const fieldViolations = fields.map(({ field, message }) => ({ field, description: message }));
    result.details.push({ desc: BadRequestSchema, value: { fieldViolations } });
  }
  if (conflict !== undefined) result.details.push({ desc: SyncConflictSchema, value: conflict });
  return result;
}
