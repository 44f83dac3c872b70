import type { IncomingMessage, ServerResponse } from "node:http";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Chain } from "../../calls/chain.ts";
import { doorError, type FaultLog } from "../../calls/journey.ts";
import type { WireCall } from "../../calls/wire-call.ts";
import { type FieldViolation, ServiceError } from "../../domain/errors.ts";
import { agentRoutes } from "./agent-routes.ts";
import { readJsonBody } from "./body.ts";
import { Fields } from "./fields.ts";
import { preferredWait } from "./prefer.ts";
import { readQuery } from "./query.ts";
import { type Match, Router } from "./router.ts";
import { sendAnswer, sendError } from "./send.ts";
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
    let isLogged = false;
    try {
      const [path, query] = splitUrl(request.url ?? "");
      const match = router.match(request.method ?? "", path.slice(restPrefix.length));
      const call = new RestCall({ ...wire, match, query, address: parts.addressOf(request) });
      const { message, outcome } = await parts.chain.unary(call).catch((cause: unknown) => {
        isLogged = true;
        throw cause;
      });
      sendAnswer(wire, match.route.tell(message as Message, { request: call.request, outcome }));
    } catch (cause) {
      const isKnown = isLogged && cause instanceof ServiceError;
      sendError(wire, isKnown ? cause : doorError(parts, "rest", cause));
    }
  };
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
  readonly #asked: Asked;
  readonly #left = new AbortController();

  constructor(asked: Asked) {
    this.#asked = asked;
    this.method = asked.match.route.method;
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

  async readMessage(): Promise<Message> {
    const { request, response, match, query } = this.#asked;
    const body = match.route.verb === "GET" ? {} : await readJsonBody(request, response);
    this.request = match.route.ask({
      params: match.params,
      query: new Fields(readQuery(query), this.problems),
      body: new Fields(body, this.problems),
      preferredWait: preferredWait(this.metadata("prefer")),
    });
    return this.request;
  }
}

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly match: Match;
  readonly query: string;
  readonly address: string;
  readonly headers: Record<string, string>;
}
