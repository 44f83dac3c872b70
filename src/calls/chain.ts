import type { DescMethod, DescService, Message, MessageInitShape } from "@bufbuild/protobuf";
import { ServiceError } from "../domain/errors.ts";
import type { Group } from "../domain/groups.ts";
import type { Burst, Call, Handlers, Outcome } from "../services/call.ts";
import { type Authenticate, type Caller, isForgery, requireGroup } from "./auth/authenticate.ts";
import { guard, type Journey, type JourneyLog, logSuccess, mapError } from "./journey.ts";
import { untilBody, untilLeft } from "./leaving.ts";
import type { RateCounters, RateState } from "./rate-limits.ts";
import { rpcGroups } from "./rpc-groups.ts";
import type { Validate } from "./validate.ts";
import type { WireCall } from "./wire-call.ts";

export interface Answer {
  readonly message: MessageInitShape<DescMethod["output"]>;
  readonly outcome: Outcome;
}

/**
 * What every call passes, once, whichever door it came through: log, map errors, authenticate,
 * rate limit, validate, handler. Throws nothing but ServiceError.
 */
export interface Chain {
  unary(wire: WireCall): Promise<Answer>;
  /** Resolves when the stream may begin. */
  stream(wire: WireCall): Promise<AsyncIterable<Burst<Answer["message"]>>>;
}

export interface ChainParts extends JourneyLog {
  readonly services: readonly Service[];
  readonly authenticate: Authenticate;
  readonly rates: RateCounters;
  /** By address: tokens whose signature was refused. */
  readonly forgeries: RateCounters;
  readonly validate: Validate;
  /** A sign of life of a caller's agent. */
  seen(owner: string, agentId: string): void;
  onTokenEnd(caller: Caller, tell: (reason: "expired" | "revoked") => void): Disposable;
  newRequestId(): string;
  readonly stopping: AbortSignal;
}

/** A service of the contract with its handlers. */
export interface Service {
  readonly service: DescService;
  readonly handlers: Readonly<Record<string, LooseHandler>>;
}

type LooseHandler = (request: never, call: Call) => unknown;

/** Ties handlers to their service: a forgotten or wrong one does not compile. */
export function service<S extends DescService>(desc: S, handlers: Handlers<S>): Service {
  return { service: desc, handlers: handlers as Service["handlers"] };
}

export function createChain(parts: ChainParts): Chain {
  const routes = routesOf(parts.services);
  const begin = (wire: WireCall): Journey => ({
    wire,
    requestId: parts.newRequestId(),
    beganMs: performance.now(),
    outcome: { waitedMs: 0 },
  });
  return {
    async unary(wire) {
      const journey = begin(wire);
      try {
        const { handle, request, call } = await admit(parts, { routes, journey });
        const message = await untilLeft(wire, handle(request as never, call) as Promise<Message>);
        logSuccess(parts, journey);
        return { message, outcome: journey.outcome };
      } catch (cause) {
        throw mapError(parts, journey, cause);
      }
    },

    async stream(wire) {
      const journey = begin(wire);
      try {
        const { handle, request, call } = await admit(parts, { routes, journey });
        const bursts = handle(request as never, call) as AsyncIterable<Burst<Message>>;
        return guard(parts, journey, bursts);
      } catch (cause) {
        throw mapError(parts, journey, cause);
      }
    },
  };
}

interface Route {
  readonly group: Group;
  readonly handle: LooseHandler;
}

function routesOf(services: readonly Service[]): ReadonlyMap<DescMethod, Route> {
  const routes = new Map<DescMethod, Route>();
  for (const { service: desc, handlers } of services) {
    for (const method of desc.methods) {
      const group = rpcGroups.get(method);
      const handle = handlers[method.localName];
      if (group === undefined || handle === undefined) throw new Error(`no route: ${method.name}`);
      routes.set(method, { group, handle });
    }
  }
  return routes;
}

/** Authenticate, limit, validate: what comes before the handler. */
async function admit(
  parts: ChainParts,
  { routes, journey }: { routes: ReadonlyMap<DescMethod, Route>; journey: Journey },
) {
  const { wire } = journey;
  const route = routes.get(wire.method);
  if (route === undefined) throw new ServiceError("ROUTE_NOT_FOUND", "No such rpc");
  if (parts.stopping.aborted) throw stopping();
  const caller = await identify(parts, wire);
  journey.caller = caller;
  await parts.rates.take(route.group, caller.owner, (state) => tellRate(wire, state));
  requireGroup(caller, route.group);
  const request = await untilBody(wire, wire.readMessage());
  parts.validate(wire.method.input, request, wire.problems);
  return { handle: route.handle, request, call: toCall(parts, journey, caller) };
}

async function identify(parts: ChainParts, wire: WireCall): Promise<Caller> {
  try {
    const caller = await parts.authenticate({
      authorization: wire.metadata("authorization"),
      agentId: wire.metadata("x-agent-id"),
    });
    parts.seen(caller.owner, caller.agentId);
    return caller;
  } catch (cause) {
    if (isForgery(cause)) await parts.forgeries.take("auth", wire.address);
    throw cause;
  }
}

function tellRate(wire: WireCall, { limit, remaining, resetSeconds }: RateState): void {
  wire.answerHeader("x-ratelimit-limit", String(limit));
  wire.answerHeader("x-ratelimit-remaining", String(remaining));
  wire.answerHeader("x-ratelimit-reset", String(resetSeconds));
}

function toCall(parts: ChainParts, { wire, outcome }: Journey, caller: Caller): Call {
  const { boundAgentId } = caller.identity;
  return {
    owner: caller.owner,
    agentId: caller.agentId,
    get signal() {
      return wire.signal;
    },
    timeLeftMs: () =>
      wire.deadlineMs === undefined ? undefined : wire.deadlineMs - performance.now(),
    idempotencyKey: wire.metadata("idempotency-key") ?? "",
    requireGroup: (group) => requireGroup(caller, group),
    requireAgent(agentId) {
      if (boundAgentId === "" || boundAgentId === agentId) return;
      throw new ServiceError("FORBIDDEN", `This token is bound to agent ${boundAgentId}`);
    },
    onTokenEnd: (tell) => parts.onTokenEnd(caller, tell),
    outcome,
  };
}

function stopping(): ServiceError {
  return new ServiceError("UNAVAILABLE", "The server is stopping", { retryAfterMs: 1000 });
}
