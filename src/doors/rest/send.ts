import type { IncomingMessage, ServerResponse } from "node:http";
import { wireErrors } from "../../calls/wire.ts";
import type { ServiceError } from "../../domain/errors.ts";
import { dropUnread } from "../unread.ts";
import { errorView } from "./error-view.ts";
import type { Told } from "./route.ts";

type Headers = Readonly<Record<string, string>>;

export function sendAnswer(
  response: ServerResponse,
  { status, body, location }: Told,
  headers: Headers,
): void {
  if (body === undefined) {
    response.writeHead(status, headers).end();
    return;
  }
  const json = JSON.stringify(body);
  response.writeHead(status, {
    ...headers,
    ...(location === undefined ? {} : { location }),
    ...contentHeaders(json),
  });
  response.end(json);
}

/** Sends an error, whether its request was read to the end or not. */
export function sendError(
  wire: {
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly headers: Headers;
  },
  error: ServiceError,
): void {
  const { request, response, headers } = wire;
  if (response.headersSent || response.destroyed) return;
  const json = JSON.stringify(errorView(error));
  const { retryAfterMs } = error.facts;
  if (!request.complete) dropUnread(request, response);
  response.writeHead(wireErrors[error.reason].status, {
    ...headers,
    ...error.facts.headers,
    ...(retryAfterMs === undefined
      ? {}
      : { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }),
    ...contentHeaders(json),
  });
  response.end(json);
}

function contentHeaders(json: string): Headers {
  return {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(json)),
  };
}
