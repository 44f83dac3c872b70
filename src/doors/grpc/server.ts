import {
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { ServiceError } from "../../domain/errors.ts";
import type { ConnectDoor } from "../connect.ts";
import type { GrpcLane } from "./lane.ts";
import { statusOf } from "./status.ts";

/** A gRPC listener, and a way to let its connections go. */
export interface GrpcServer {
  readonly server: Http2Server;
  /** Asks every client to go elsewhere; what runs may end. */
  goAway(): void;
  destroy(): void;
}

/** What a connection is told of us. */
const settings = {
  maxConcurrentStreams: 1000,
  /** Of one request, in bytes; names, values and 32 for each. */
  maxHeaderListSize: 64 * 1024,
};
/** What a connection may hold, mostly answers not yet taken, before it is refused more calls. */
const connectionMegabytesMax = 64;
/** So much of an unknown path is said back. */
const pathCharsMax = 200;

/**
 * HTTP/2 in clear text (h2c): gRPC, and whatever else the Connect door speaks. `lane`: null, and
 * the Connect door serves it all.
 */
export function createGrpcServer(connect: ConnectDoor, lane: GrpcLane | null): GrpcServer {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer({ settings, maxSessionMemory: connectionMegabytesMax });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    // A peer that breaks the protocol ends its own connection, nothing else.
    session.on("error", () => session.destroy());
  });
  server.on("request", (request, response) => {
    if (!connect(request, response)) refuse(request, response);
  });
  if (lane !== null) putFirst(lane, server);
  return {
    server,
    goAway() {
      for (const session of sessions) session.close();
    },
    destroy() {
      for (const session of sessions) session.destroy();
    },
  };
}

/**
 * Requests and responses are made of streams by a listener of node:http2 itself: it is called for
 * those alone that the lane leaves.
 */
function putFirst(lane: GrpcLane, server: Http2Server): void {
  const [toRequest, ...others] = server.listeners("stream");
  if (toRequest === undefined || others.length > 0) {
    throw new Error("node:http2 does not make requests as it did: start with --grpc-lane off");
  }
  server.removeAllListeners("stream");
  server.on("stream", (...event) => {
    const [stream, headers] = event;
    if (!lane(stream, headers)) Reflect.apply(toRequest, server, event);
  });
}

/** An unknown rpc, with its reason; what is not gRPC gets its status only. */
function refuse(request: Http2ServerRequest, response: Http2ServerResponse): void {
  if (!request.headers["content-type"]?.startsWith("application/grpc")) {
    response.writeHead(404).end();
    return;
  }
  const path = request.url.slice(0, pathCharsMax);
  const error = new ServiceError("ROUTE_NOT_FOUND", `No such rpc: ${path}`);
  response.writeHead(200, { "content-type": "application/grpc", ...statusOf(error) });
  response.end();
}
