import { errors } from "jose";
import { ServiceError } from "../../domain/errors.ts";
import type { Group } from "../../domain/groups.ts";
import { type Identity, isAgentId } from "./identity.ts";
import { credentialsMissing } from "./refusals.ts";
import type { Verifier } from "./verifier.ts";

/** Who makes a call. */
export interface Caller {
  readonly owner: string;
  readonly agentId: string;
  readonly identity: Identity;
}

/** The two headers, or entries of metadata, that tell who calls. */
export interface CallerHeaders {
  readonly authorization?: string | undefined;
  readonly agentId?: string | undefined;
}

/**
 * Who calls; at once when the token was verified lately. Throws or rejects with UNAUTHORIZED for a
 * header that is missing, malformed or not accepted, and only then with FORBIDDEN for a token that
 * is bound to another agent.
 */
export type Authenticate = (headers: CallerHeaders) => Caller | Promise<Caller>;

/** The scheme in any case (RFC 9110 section 11.1), then a b64token (RFC 6750 section 2.1). */
const bearerPattern = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

export function createAuthenticator(parts: {
  readonly verifier: Pick<Verifier, "verify">;
}): Authenticate {
  return ({ authorization, agentId }) => {
    const token = readBearer(authorization);
    const agent = readAgentId(agentId);
    const verified = parts.verifier.verify(token);
    if (!(verified instanceof Promise)) return callerOf(verified, agent);
    return verified.then((identity) => callerOf(identity, agent));
  };
}

/**
 * Whether a call was refused for its token's signature: wrong, by an unknown key, or made with an
 * algorithm that no issuer here uses. Such calls are limited by address.
 */
export function isForgery(error: unknown): boolean {
  if (!(error instanceof ServiceError)) return false;
  const { cause } = error.facts;
  return (
    cause instanceof errors.JWSSignatureVerificationFailed ||
    cause instanceof errors.JWKSNoMatchingKey ||
    cause instanceof errors.JOSEAlgNotAllowed
  );
}

/** Throws FORBIDDEN when the token's scope does not cover calls of that group. */
export function requireGroup(caller: Caller, group: Group): void {
  const { groups } = caller.identity;
  if (groups === null || groups.has(group)) return;
  // RFC 6750 section 3.1
  const challenge = `Bearer realm="sealflow", error="insufficient_scope", scope="sealflow:${group}"`;
  throw new ServiceError("FORBIDDEN", `The token's scope does not include sealflow:${group}`, {
    headers: { "www-authenticate": challenge },
  });
}

function readBearer(authorization: string | undefined): string {
  const [, token] = bearerPattern.exec(authorization ?? "") ?? [];
  if (token !== undefined) return token;
  throw credentialsMissing("Send Authorization: Bearer TOKEN. Get one: sealflow token --sub NAME");
}

function readAgentId(agentId: string | undefined): string {
  if (agentId === undefined || agentId === "") {
    throw credentialsMissing("Send X-Agent-ID: the id of the agent or device that calls");
  }
  if (isAgentId(agentId)) return agentId;
  throw credentialsMissing("X-Agent-ID must be 1 to 128 of A-Z a-z 0-9 . _ : - and not `register`");
}

function callerOf(identity: Identity, agentId: string): Caller {
  if (identity.boundAgentId !== "" && identity.boundAgentId !== agentId) {
    throw new ServiceError(
      "FORBIDDEN",
      "The token is bound to another agent than X-Agent-ID names",
    );
  }
  return { owner: identity.owner, agentId, identity };
}
