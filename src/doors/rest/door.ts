import type { IncomingMessage, ServerResponse } from "node:http";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Chain } from "../../calls/chain.ts";
import { doorError, type FaultLog } from "../../calls/journey.ts";
import type { WireCall } from "../../calls/wire-call.ts";
import { type FieldViolation, ServiceError } from "../../domain/errors.ts";
import { agentRoutes } from "./agent-routes.ts";
import { readJsonBody } from "./body.ts";
import { endWithError, sendEvents } from "./event-stream.ts";
import { Fields } from "./fields.ts";
import { preferredWait } from "./prefer.ts";
import { readQuery } from "./query.ts";
import type { AnswerRoute, Route, ServerEvent, StreamRoute } from "./route.ts";
import { type Match, Router } from "./router.ts";
import { type RestWire, sendAnswer, sendError } from "./send.ts";
import { syncRoutes } from "./sync-routes.ts";
import { workflowRoutes } from "./workflow-routes.ts";

export const restPrefix = "/api/v1";

export const restRoutes = [...workflowRoutes, ...agentRoutes, ...syncRoutes];

export interface RestDoorParts extends FaultLog {
  readonly chain: Chain;
  addressOf(request: IncomingMessage): string;
}

/** Serves a path below `/api/v1`. Never rejects. */
export type RestDoor = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export function createRestDoor(parts: RestDoorParts): RestDoor {
  const router = new Router(restRoutes);
  return async (request, response) => {
    const wire = { request, response, headers: {} };
    /** What the chain has refused it has logged. */
    let isLogged = false;
    try {
      const [path, query] = splitUrl(request.url ?? "");
      const { route, params } = router.match(request.method ?? "", path.slice(restPrefix.length));
      const address = parts.addressOf(request);
      const call = new RestCall({ ...wire, route, params, query, address });
      isLogged = true;
      if (route.kind === "stream") await serveStream(parts.chain, { wire, route, call });
      else await serveAnswer(parts.chain, { wire, route, call });
    } catch (cause) {
      const isKnown = isLogged && cause instanceof ServiceError;
      const error = isKnown ? cause : doorError(parts, "rest", cause);
      if (response.headersSent) endWithError(wire, error);
      else sendError(wire, error);
    }
  };
}

interface Served<R extends Route> {
  readonly wire: RestWire;
  readonly route: R;
  readonly call: RestCall;
}

async function serveAnswer(chain: Chain, { wire, route, call }: Served<AnswerRoute>) {
  const { message, outcome } = await chain.unary(call);
  sendAnswer(wire, route.tell(message as Message, { request: call.request, outcome }));
}

async function serveStream(chain: Chain, { wire, route, call }: Served<StreamRoute>) {
  const bursts = await chain.stream(call);
  await sendEvents(wire, eventsOf(route, bursts), () => call.progressed());
}

async function* eventsOf(
  { tellEach }: StreamRoute,
  bursts: AsyncIterable<readonly unknown[]>,
): AsyncGenerator<ServerEvent> {
  for await (const burst of bursts) {
    for (const message of burst) yield tellEach(message as Message);
  }
}

function splitUrl(url: string): [path: string, query: string] {
  const at = url.indexOf("?");
  return at < 0 ? [url, ""] : [url.slice(0, at), url.slice(at + 1)];
}

/** One call on the wire of REST. */
class RestCall implements WireCall {
  readonly method: DescMethod;
  readonly door = "rest";
  readonly address: string;
  readonly deadlineMs = undefined;
  readonly problems: FieldViolation[] = [];
  request: Message;
  /** To be called when the reader of a stream has taken more of it. */
  progressed: () => void = () => {};
  readonly #asked: Asked;
  readonly #left = new AbortController();

  constructor(asked: Asked) {
    this.#asked = asked;
    this.method = asked.route.method;
    this.address = asked.address;
    this.request = { $typeName: this.method.input.typeName };
    const { response } = asked;
    response.once("close", () => {
      if (!response.writableFinished) this.#left.abort();
    });
  }

  get signal(): AbortSignal {
    return this.#left.signal;
  }

  metadata(name: string): string | undefined {
    const value = this.#asked.request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  answerHeader(name: string, value: string): void {
    this.#asked.headers[name] = value;
  }

  drop(): void {
    this.#asked.response.destroy();
  }

  onProgress(tell: () => void): void {
    this.progressed = tell;
  }

  async readMessage(): Promise<Message> {
    const { request, response, route, params, query } = this.#asked;
    const body = route.verb === "GET" ? {} : await readJsonBody(request, response);
    this.request = route.ask({
      params,
      query: new Fields(readQuery(query), this.problems),
      body: new Fields(body, this.problems),
      preferredWait: preferredWait(this.metadata("prefer")),
      lastEventId: this.metadata("last-event-id") || undefined,
    });
    return this.request;
  }
}

interface Asked extends Match {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: string;
  readonly address: string;
  readonly headers: Record<string, string>;
}
