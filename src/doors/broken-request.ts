import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { wireErrors } from "../calls/wire.ts";
import { ServiceError } from "../domain/errors.ts";
import { errorView } from "./rest/error-view.ts";

/** What is wrong below the level of any call. */
export function brokenRequest(message: string): ServiceError {
  return new ServiceError("VALIDATION_ERROR", message);
}

/**
 * Answers what is no HTTP in the shape of REST and closes the connection. `latest`: the answer that
 * was last begun on it, which must not be written into.
 */
export function refuseBroken(
  cause: NodeJS.ErrnoException,
  socket: Duplex,
  latest: ServerResponse | undefined,
): void {
  const isAnswering = latest?.headersSent && !latest.writableFinished;
  if (!socket.writable || isAnswering || cause.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const error = brokenRequest(messages[cause.code ?? ""] ?? "This is not HTTP/1.1");
  const json = JSON.stringify(errorView(error));
  const { status } = wireErrors[error.reason];
  socket.end(
    `HTTP/1.1 ${status} Bad Request\r\nconnection: close\r\n` +
      `content-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`,
  );
}

const messages: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "The headers are too large",
  ERR_HTTP_REQUEST_TIMEOUT: "The headers did not arrive in time",
  HPE_INVALID_CONTENT_LENGTH: "The Content-Length is not a length",
  HPE_INVALID_TRANSFER_ENCODING: "Content-Length and Transfer-Encoding exclude each other",
};
