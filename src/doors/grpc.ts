import {
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { toConnectError } from "../calls/connect-error.ts";
import { ServiceError } from "../domain/errors.ts";
import type { ConnectDoor } from "./connect.ts";

/** A gRPC listener, and a way to let its connections go. */
export interface GrpcServer {
  readonly server: Http2Server;
  /** Asks every client to go elsewhere; what runs may end. */
  goAway(): void;
  destroy(): void;
}

const streamsPerConnectionMax = 1000;
/** So much of an unknown path is said back. */
const pathCharsMax = 200;

/** HTTP/2 in clear text (h2c): gRPC, and whatever else the Connect door speaks. */
export function createGrpcServer(connect: ConnectDoor): GrpcServer {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer({ settings: { maxConcurrentStreams: streamsPerConnectionMax } });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    // A peer that breaks the protocol ends its own connection, nothing else.
    session.on("error", () => session.destroy());
  });
  server.on("request", (request, response) => {
    if (!connect(request, response)) refuse(request, response);
  });
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

/** An unknown rpc, with its reason; what is not gRPC gets its status only. */
function refuse(request: Http2ServerRequest, response: Http2ServerResponse): void {
  if (!request.headers["content-type"]?.startsWith("application/grpc")) {
    response.writeHead(404).end();
    return;
  }
  const trailer = new Headers();
  const path = request.url.slice(0, pathCharsMax);
  const error = new ServiceError("ROUTE_NOT_FOUND", `No such rpc: ${path}`);
  setTrailerStatus(trailer, toConnectError(error));
  response.writeHead(200, { "content-type": "application/grpc", ...Object.fromEntries(trailer) });
  response.end();
}
