import type { IncomingMessage, ServerResponse } from "node:http";
import { retryAfterSeconds } from "../../calls/error-details.ts";
import { wireErrors } from "../../calls/wire.ts";
import type { ServiceError } from "../../domain/errors.ts";
import { dropUnread } from "../unread.ts";
import { errorView } from "./error-view.ts";
import type { Told } from "./route.ts";

type Headers = Readonly<Record<string, string>>;

/** What an answer is written to. */
export interface RestWire {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: Headers;
}

/** Sends an answer, whether its request was read to the end or not. */
export function sendAnswer(wire: RestWire, { status, body, location }: Told): void {
  const { request, response, headers } = wire;
  if (!request.complete) dropUnread(request, response);
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
export function sendError(wire: RestWire, error: ServiceError): void {
  const { request, response, headers } = wire;
  if (response.headersSent || response.destroyed) return;
  const json = JSON.stringify(errorView(error));
  const retryAfter = retryAfterSeconds(error);
  if (!request.complete) dropUnread(request, response);
  response.writeHead(wireErrors[error.reason].status, {
    ...headers,
    ...error.facts.headers,
    ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }),
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
