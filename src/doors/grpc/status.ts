import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { toConnectError } from "../../calls/connect-error.ts";
import type { ServiceError } from "../../domain/errors.ts";

/** What ends a call that succeeded. */
export const okStatus: Readonly<Record<string, string>> = { "grpc-status": "0" };

/** What ends a call that failed: `grpc-status`, `grpc-message`, `grpc-status-details-bin`. */
export function statusOf(error: ServiceError): Record<string, string> {
  const trailer = setTrailerStatus(new Headers(), toConnectError(error));
  return Object.fromEntries(trailer);
}
