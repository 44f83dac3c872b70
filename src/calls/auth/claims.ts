import type { JWTPayload, JWTVerifyOptions } from "jose";
import type { ServiceError } from "../../domain/errors.ts";
import { type Identity, isAgentId, isSubject, leewayMs } from "./identity.ts";
import { tokenRefused } from "./refusals.ts";
import { groupsOfScope } from "./scope.ts";

/** Whose token it is. */
export interface ClaimSource {
  readonly owner: (sub: string) => string;
  readonly keyId: string;
  /** Whether `client_id` names a client of ours; another issuer's means nothing here. */
  readonly namesOurClients: boolean;
}

const dateSecondsMax = 8.64e12;

/** What every issuer asks of a token; `jwtVerify` alone demands no `exp`. */
export function commonChecks(nowMs: number) {
  return {
    requiredClaims: ["exp", "sub"],
    currentDate: new Date(nowMs),
    clockTolerance: leewayMs / 1000,
  } satisfies JWTVerifyOptions;
}

/** Reads the claims of a token whose signature, time and issuer were found right. */
export function identityOf(payload: JWTPayload, source: ClaimSource, nowMs: number): Identity {
  const { sub, agent_id: agentId, client_id: clientId, scope } = payload;
  if (!isSubject(sub)) {
    throw badClaim("sub", "must be 1 to 256 characters, without NUL and lone surrogates");
  }
  if (agentId !== undefined && !isAgentId(agentId)) throw badClaim("agent_id", "is no agent id");
  if (scope !== undefined && typeof scope !== "string") throw badClaim("scope", "must be a string");
  if (clientId !== undefined && typeof clientId !== "string") {
    throw badClaim("client_id", "must be a string");
  }
  checkIssuedAt(payload.iat, nowMs);
  return {
    owner: source.owner(sub),
    boundAgentId: agentId ?? "",
    groups: groupsOfScope(scope),
    clientId: source.namesOurClients ? (clientId ?? "") : "",
    keyId: source.keyId,
    expiresAtMs: expiryOf(payload.exp),
  };
}

/** jose looks at `iat` only with a greatest age. */
function checkIssuedAt(iat: unknown, nowMs: number): void {
  if (iat === undefined) return;
  if (typeof iat !== "number") throw badClaim("iat", "must be a number");
  if (iat * 1000 > nowMs + leewayMs) throw badClaim("iat", "is in the future");
}

/** JSON can say 1e999, which would never expire. */
function expiryOf(exp: unknown): number {
  if (typeof exp !== "number" || exp > dateSecondsMax) throw badClaim("exp", "is out of range");
  return exp * 1000;
}

function badClaim(claim: string, fault: string): ServiceError {
  return tokenRefused(`The token's "${claim}" ${fault}`);
}
