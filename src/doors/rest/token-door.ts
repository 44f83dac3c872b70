import type { IncomingMessage, ServerResponse } from "node:http";
import { grantToken, type TokenEndpoint } from "../../calls/auth/token-endpoint.ts";
import { readTokenRequest, tokenRequestBytesMax } from "../../calls/auth/token-request.ts";
import { doorError, type FaultLog } from "../../calls/journey.ts";
import { untilBody } from "../../calls/leaving.ts";
import type { RateCounters, RateState } from "../../calls/rate-limits.ts";
import { ServiceError } from "../../domain/errors.ts";
import { readBytes } from "./body.ts";
import { sendAnswer, sendError } from "./send.ts";

export const tokenPath = "/api/v1/auth/token";

export interface TokenDoorParts extends TokenEndpoint, FaultLog {
  /** By client and address. */
  readonly clientRates: RateCounters;
  /** By address alone. */
  readonly addressRates: RateCounters;
  addressOf(request: IncomingMessage): string;
}

/** `POST /api/v1/auth/token`: the one path that needs no token, for it gives one. Never rejects. */
export function createTokenDoor(parts: TokenDoorParts) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const headers: Record<string, string> = { "cache-control": "no-store" };
    const wire = { request, response, headers };
    try {
      const { access_token, token_type, expires_in } = await answer(parts, wire);
      sendAnswer(wire, { status: 200, body: { access_token, token_type, expires_in } });
    } catch (cause) {
      sendError(wire, doorError(parts, "token", cause));
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
  const departure = { signal: leaving(response), deadlineMs: undefined };
  const body = await untilBody(departure, readBytes(request, response, tokenRequestBytesMax));
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

/** Aborts when the caller leaves before he is answered. */
function leaving(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  response.once("close", () => left.abort());
  return left.signal;
}

function tell(headers: Record<string, string>, { limit, remaining, resetSeconds }: RateState) {
  headers["x-ratelimit-limit"] = String(limit);
  headers["x-ratelimit-remaining"] = String(remaining);
  headers["x-ratelimit-reset"] = String(resetSeconds);
}
