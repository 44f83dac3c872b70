import type { ServerResponse } from "node:http";
import type { ServiceError } from "../../domain/errors.ts";
import { inSlices } from "../slices.ts";
import { dropUnread } from "../unread.ts";
import { errorView } from "./error-view.ts";
import type { ServerEvent } from "./route.ts";
import type { RestWire } from "./send.ts";

/**
 * Server-sent events: HTML Living Standard (WHATWG), section 9.2. No encoding of its own, no
 * length; proxies are asked to hold nothing back.
 */
const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
} as const;

/**
 * Sends events as they come, each once the one before has gone out, and ends the answer. The head
 * goes out with the first: until then a failure is an answer of its own. Rejects with what the
 * events fail with. `onProgress`: the reader has taken more.
 */
export async function sendEvents(
  wire: RestWire,
  events: AsyncIterable<ServerEvent>,
  onProgress: () => void,
): Promise<void> {
  const { request, response } = wire;
  for await (const event of events) {
    if (!response.headersSent) begin(wire);
    // Whoever asks for the head alone has it now.
    if (request.method === "HEAD") break;
    for (const slice of inSlices(Buffer.from(eventText(event)))) {
      await taken(response, slice);
      onProgress();
    }
    if (response.destroyed) break;
  }
  if (response.destroyed) return;
  if (!response.headersSent) begin(wire);
  response.end();
}

/** Ends a stream that has begun: the error is its last event. */
export function endWithError({ response }: RestWire, error: ServiceError): void {
  if (response.destroyed || response.writableEnded) return;
  response.end(`event: error\ndata: ${JSON.stringify(errorView(error))}\n\n`);
}

function begin({ request, response, headers }: RestWire): void {
  if (!request.complete) {
    // A body that nobody asked for must not hide that its caller leaves.
    dropUnread(request, response);
    request.resume();
  }
  response.writeHead(200, { ...headers, ...streamHeaders });
  response.flushHeaders();
}

/**
 * The id stands last: a reader that takes it note by note, as it arrives, does not count an event
 * that was cut off in its data. (JSON has no line ends of its own.)
 */
function eventText({ event, id, data }: ServerEvent): string {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n${idLine}\n`;
}

/** Resolves when there is room again, or nobody reads any more. */
async function taken(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  if (response.destroyed || response.write(bytes)) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once("drain", resolve).once("close", resolve);
  await promise;
  response.off("drain", resolve).off("close", resolve);
}
