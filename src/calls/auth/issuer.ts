import { randomBytes } from "node:crypto";
import { SignJWT } from "jose";
import { invalid } from "../../domain/errors.ts";
import { isAgentId, isSubject } from "./identity.ts";
import type { SigningKey } from "./signing-keys.ts";
import { checkTtl } from "./ttl.ts";

/** `iss` and `aud` of the tokens that this server makes for itself. */
export const builtInName = "sealflow";
export const builtInAlgorithm = "ES256";
/** RFC 9068 section 2.1. */
export const accessTokenType = "at+jwt";

export interface TokenDraft {
  /** The owner. */
  readonly sub: string;
  /** Binds the token to one agent; absent or empty: not bound. */
  readonly agentId?: string;
  /** The `scope` claim; absent or empty: all groups. */
  readonly scope?: string;
  readonly clientId?: string;
  /** At most 30 days. */
  readonly ttlSeconds: number;
  readonly nowMs: number;
}

/** Signs an access token (RFC 9068). Throws VALIDATION_ERROR for a draft that no server accepts. */
export async function issueToken(
  key: SigningKey,
  { sub, agentId = "", scope = "", clientId = "", ttlSeconds, nowMs }: TokenDraft,
): Promise<{ readonly token: string; readonly expiresAtMs: number }> {
  if (!isSubject(sub)) throw invalid("sub", "must be 1 to 256 characters, without NUL");
  if (agentId !== "" && !isAgentId(agentId)) {
    throw invalid("agent_id", "must be 1 to 128 of A-Z a-z 0-9 . _ : - and not `register`");
  }
  const issuedAt = Math.floor(nowMs / 1000);
  const expiry = issuedAt + checkTtl(ttlSeconds);
  const claims = {
    ...(clientId === "" ? {} : { client_id: clientId }),
    ...(agentId === "" ? {} : { agent_id: agentId }),
    ...(scope === "" ? {} : { scope }),
  };
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: builtInAlgorithm, typ: accessTokenType, kid: key.kid })
    .setIssuer(builtInName)
    .setAudience(builtInName)
    .setSubject(sub)
    .setIssuedAt(issuedAt)
    .setExpirationTime(expiry)
    .setJti(randomBytes(16).toString("base64url"))
    .sign(key.privateKey);
  return { token, expiresAtMs: expiry * 1000 };
}
