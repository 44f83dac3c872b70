import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { doorError, type FaultLog } from "../calls/journey.ts";
import { ServiceError } from "../domain/errors.ts";
import { brokenRequest, refuseBroken } from "./broken-request.ts";
import type { ConnectDoor } from "./connect.ts";
import type { Cors } from "./cors.ts";
import { type RestDoor, restPrefix } from "./rest/door.ts";
import { sendError } from "./rest/send.ts";
import { tokenPath } from "./rest/token-door.ts";

export interface HttpDoors {
  readonly cors: Cors;
  readonly connect: ConnectDoor;
  readonly rest: RestDoor;
  readonly token: RestDoor;
  readonly faults: FaultLog;
}

/** Time for the headers of a request; its body has a limit of its own. */
const headersTimeoutMs = 15_000;
/** Longer than proxies keep idle connections, so that they, not we, close them. */
const keepAliveTimeoutMs = 75_000;

/** HTTP/1.1: REST, Connect and gRPC-Web on one port. */
export function createHttpServer(doors: HttpDoors): Server {
  const server = createServer({
    headersTimeout: headersTimeoutMs,
    requestTimeout: 0,
    connectionsCheckingInterval: headersTimeoutMs / 3,
    keepAliveTimeout: keepAliveTimeoutMs,
    // Asked for by dispatch, whose refusal has the shape of all others.
    requireHostHeader: false,
  });
  const latest = new WeakMap<Duplex, ServerResponse>();
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    latest.set(request.socket, response);
    dispatch(doors, request, response);
  };
  server.on("clientError", (cause, socket) => refuseBroken(cause, socket, latest.get(socket)));
  server.on("request", serve);
  // The doors ask for the body themselves, once they know who calls.
  server.on("checkContinue", serve);
  return server;
}

function dispatch(doors: HttpDoors, request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.host === undefined && request.httpVersion === "1.1") {
    const error = doorError(doors.faults, "http", brokenRequest("The Host header is missing"));
    sendError({ request, response, headers: {} }, error);
    return;
  }
  if (doors.cors(request, response)) return;
  const [path = ""] = (request.url ?? "").split("?", 1);
  if (path === tokenPath) doors.token(request, response);
  else if (path === restPrefix || path.startsWith(`${restPrefix}/`)) doors.rest(request, response);
  else if (!doors.connect(request, response)) {
    const error = doorError(doors.faults, "http", noRoute());
    sendError({ request, response, headers: {} }, error);
  }
}

function noRoute(): ServiceError {
  return new ServiceError("ROUTE_NOT_FOUND", "No such path. REST is below /api/v1");
}
