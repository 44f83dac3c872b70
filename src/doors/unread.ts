import type { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";

/** How long the rest of a request is taken in after its answer. */
const unreadMs = 2_000;

/**
 * Takes in and drops what its caller still sends of a request that is answered: a connection closed
 * under his hands would cost him the answer. Whoever sends on for too long is cut off.
 */
export function dropUnread(request: IncomingMessage, response: EventEmitter): void {
  const { socket } = request;
  response.once("finish", () => {
    if (request.complete) return;
    request.resume();
    const timer = setTimeout(() => socket.destroy(), unreadMs).unref();
    request.once("close", () => clearTimeout(timer));
  });
}

/** The body, chunk by chunk. Who stops reading leaves the connection as it is. */
export function bodyOf(request: IncomingMessage): AsyncIterable<Buffer> {
  return request.iterator({ destroyOnReturn: false });
}
