import type { IncomingMessage, ServerResponse } from "node:http";
import { grantToken, type TokenEndpoint } from "../../calls/auth/token-endpoint.ts";
import { readTokenRequest, tokenRequestBytesMax } from "../../calls/auth/token-request.ts";
import { internalError } from "../../calls/journey.ts";
import { describeFault, type Log } from "../../calls/log.ts";
import type { RateCounters, RateState } from "../../calls/rate-limits.ts";
import { ServiceError } from "../../domain/errors.ts";
import { readBytes } from "./body.ts";
import { sendAnswer, sendError } from "./send.ts";

export const tokenPath = "/api/v1/auth/token";

export interface TokenDoorParts extends TokenEndpoint {
  /** By client and address. */
  readonly clientRates: RateCounters;
  /** By address alone. */
  readonly addressRates: RateCounters;
  readonly log: Log;
  newRequestId(): string;
  addressOf(request: IncomingMessage): string;
}

/** `POST /api/v1/auth/token`: the one path that needs no token, for it gives one. Never rejects. */
export function createTokenDoor(parts: TokenDoorParts) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const headers: Record<string, string> = { "cache-control": "no-store" };
    try {
      const grant = await answer(parts, { request, response, headers });
      sendAnswer(response, { status: 200, body: { ...grant } }, headers);
    } catch (cause) {
      const error =
        cause instanceof ServiceError ? cause : internalError(parts.newRequestId(), cause);
      logRefusal(parts, error);
      sendError({ request, response, headers }, error);
    }
  };
}

async function answer(
  parts: TokenDoorParts,
  wire: {
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly headers: Record<string, string>;
  },
) {
  const { request, response, headers } = wire;
  if (request.method !== "POST") {
    throw new ServiceError("METHOD_NOT_ALLOWED", `${request.method} is not served here; POST is`, {
      headers: { allow: "POST" },
    });
  }
  const address = parts.addressOf(request);
  await parts.addressRates.take("auth", address);
  const body = await readBytes(request, response, tokenRequestBytesMax);
  const asked = readTokenRequest({
    contentType: request.headers["content-type"],
    authorization: request.headers.authorization,
    body: body.toString("utf8"),
  });
  // Before any hashing: guessing a secret is what this limits.
  const key = JSON.stringify([address, asked.clientId]);
  await parts.clientRates.take("auth", key, (state) => tell(headers, state));
  return grantToken(asked, parts);
}

function tell(headers: Record<string, string>, { limit, remaining, resetSeconds }: RateState) {
  headers["x-ratelimit-limit"] = String(limit);
  headers["x-ratelimit-remaining"] = String(remaining);
  headers["x-ratelimit-reset"] = String(resetSeconds);
}

function logRefusal({ log }: TokenDoorParts, { reason, facts }: ServiceError): void {
  const isFault = reason === "INTERNAL_ERROR" || reason === "UNAVAILABLE";
  log(isFault ? "error" : "info", reason, {
    rpc: "token",
    door: "rest",
    reason,
    ...(isFault ? { fault: describeFault(facts.cause) } : {}),
  });
}
