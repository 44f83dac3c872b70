import type { IncomingMessage, ServerResponse } from "node:http";

/** What browsers may send: our own headers and those of Connect and gRPC-Web. */
const allowedHeaders = [
  "authorization",
  "x-agent-id",
  "content-type",
  "idempotency-key",
  "prefer",
  "last-event-id",
  "connect-protocol-version",
  "connect-timeout-ms",
  "connect-accept-encoding",
  "connect-content-encoding",
  "grpc-timeout",
  "x-grpc-web",
  "x-user-agent",
].join(", ");

const exposedHeaders = [
  "location",
  "retry-after",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "grpc-status",
  "grpc-message",
  "grpc-status-details-bin",
].join(", ");

const preflightSeconds = 7200;

/** Answers browsers of the origins in an allow-list; tells whether the request is done with it. */
export type Cors = (request: IncomingMessage, response: ServerResponse) => boolean;

/** `origins`: exact origins, or `*` for any. None: no browser of another origin may read us. */
export function createCors(origins: readonly string[]): Cors {
  const isAllowed = (origin: string) => origins.includes(origin) || origins.includes("*");
  return (request, response) => {
    const { origin } = request.headers;
    if (origins.length === 0) return false;
    // Also without an origin: what a cache keeps must not be given to a browser of one.
    response.setHeader("vary", "origin");
    if (origin === undefined) return false;
    const isPreflight =
      request.method === "OPTIONS" &&
      request.headers["access-control-request-method"] !== undefined;
    if (isAllowed(origin)) {
      response.setHeader("access-control-allow-origin", origin);
      response.setHeader("access-control-expose-headers", exposedHeaders);
      if (isPreflight) allowPreflight(response);
    }
    if (isPreflight) response.writeHead(204).end();
    return isPreflight;
  };
}

function allowPreflight(response: ServerResponse): void {
  response.setHeader("access-control-allow-methods", "GET, POST, PATCH, DELETE");
  response.setHeader("access-control-allow-headers", allowedHeaders);
  response.setHeader("access-control-max-age", String(preflightSeconds));
}
