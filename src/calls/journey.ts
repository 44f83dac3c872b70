import type { Message } from "@bufbuild/protobuf";
import { ServiceError } from "../domain/errors.ts";
import { spans } from "../domain/limits.ts";
import type { Burst, Outcome } from "../services/call.ts";
import type { Caller } from "./auth/authenticate.ts";
import { departureError } from "./leaving.ts";
import { describeFault, type Log } from "./log.ts";
import type { WireCall } from "./wire-call.ts";

/** One call on its way: what its log line needs. */
export interface Journey {
  readonly wire: WireCall;
  readonly requestId: string;
  readonly beganMs: number;
  readonly outcome: Outcome;
  caller?: Caller;
}

export interface JourneyLog {
  readonly log: Log;
  readonly logSuccesses: boolean;
}

/** Slower than that, waits left out, is worth a line. */
const slowMs = 1000;

/**
 * A stream fails after it was handed over, so its messages need the same net. A reader that takes
 * nothing for 30 s is let go.
 */
export async function* guard(
  parts: JourneyLog,
  journey: Journey,
  bursts: AsyncIterable<Burst<Message>>,
): AsyncGenerator<Burst<Message>> {
  let timer: NodeJS.Timeout | undefined;
  let hasStalled = false;
  journey.wire.onProgress(() => timer?.refresh());
  // The write that nobody reads may never come back to this loop: so it is logged here.
  const letGo = () => {
    hasStalled = true;
    timer = undefined;
    mapError(parts, journey, slowConsumer());
    journey.wire.drop();
  };
  try {
    for await (const burst of bursts) {
      timer = setTimeout(letGo, spans.streamStallMs);
      yield burst;
      clearTimeout(timer);
      timer = undefined;
      if (hasStalled) return;
      if (journey.wire.signal.aborted) throw departureError(journey.wire);
    }
    // A handler that ends because nobody waits any more has not come to its end.
    if (journey.wire.signal.aborted) throw departureError(journey.wire);
    logSuccess(parts, journey);
  } catch (cause) {
    throw mapError(parts, journey, cause);
  } finally {
    clearTimeout(timer);
  }
}

export function slowConsumer(): ServiceError {
  const message = "The stream stood still: nothing was read for 30 s";
  return new ServiceError("SLOW_CONSUMER", message, { retryAfterMs: 1000 });
}

/** Makes a ServiceError of anything, and logs it. */
export function mapError(parts: JourneyLog, journey: Journey, cause: unknown): ServiceError {
  const { requestId } = journey;
  const error = cause instanceof ServiceError ? cause : internalError(requestId, cause);
  const isFault = isServerFault(error);
  parts.log(isFault ? "error" : "info", error.reason, {
    ...lineOf(journey),
    reason: error.reason,
    ...(error.reason === "INTERNAL_ERROR" ? { errorId: requestId } : {}),
    ...(isFault && error.facts.cause !== undefined
      ? { fault: describeFault(error.facts.cause) }
      : {}),
  });
  return error;
}

/** (A server that stops is unavailable without a cause: that is no fault.) */
function isServerFault({ reason, facts }: ServiceError): boolean {
  return reason === "INTERNAL_ERROR" || (reason === "UNAVAILABLE" && facts.cause !== undefined);
}

export interface FaultLog {
  readonly log: Log;
  newRequestId(): string;
}

/** A fault of a door itself, which no chain has seen: logged, and shown without its text. */
export function doorError({ log, newRequestId }: FaultLog, door: string, cause: unknown) {
  if (cause instanceof ServiceError) {
    log("info", cause.reason, { door, reason: cause.reason });
    return cause;
  }
  const errorId = newRequestId();
  const reason = "INTERNAL_ERROR";
  log("error", reason, { door, reason, errorId, fault: describeFault(cause) });
  return internalError(errorId, cause);
}

/** An unknown error: its own text never reaches a client. */
function internalError(errorId: string, cause: unknown): ServiceError {
  return new ServiceError("INTERNAL_ERROR", "Internal error", { details: { errorId }, cause });
}

export function logSuccess(parts: JourneyLog, journey: Journey): void {
  const isUnary = journey.wire.method.methodKind === "unary";
  const ms = performance.now() - journey.beganMs - journey.outcome.waitedMs;
  if (isUnary && ms > slowMs) parts.log("warn", "slow call", lineOf(journey));
  else if (parts.logSuccesses) parts.log("info", "ok", lineOf(journey));
}

function lineOf({ wire, requestId, beganMs, caller }: Journey) {
  return {
    rpc: wire.method.name,
    door: wire.door,
    durationMs: Math.round(performance.now() - beganMs),
    requestId,
    ...(caller === undefined ? {} : { owner: caller.owner, agent: caller.agentId }),
  };
}
