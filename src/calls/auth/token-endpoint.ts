import { invalid } from "../../domain/errors.ts";
import type { ClientRegistry } from "./clients.ts";
import { issueToken } from "./issuer.ts";
import type { KeyRing } from "./key-ring.ts";
import { groupsOfScope, scopeOfGroups } from "./scope.ts";
import { clientRefused, type TokenRequest } from "./token-request.ts";

/** The answer, in the words of RFC 6749 section 5.1. It must not be stored by anybody. */
export interface TokenGrant {
  readonly access_token: string;
  readonly token_type: "Bearer";
  /** Seconds. */
  readonly expires_in: number;
}

export interface TokenEndpoint {
  readonly clients: Pick<ClientRegistry, "verifySecret">;
  readonly keys: Pick<KeyRing, "active">;
  /** The wall clock. */
  readonly nowMs: () => number;
}

/** How long a client's token lives. The client renews it; removing the client ends it at once. */
export const clientTokenSeconds = 3600;

/**
 * Grants a client a token of its owner, bound and narrowed as the client is. Throws UNAUTHORIZED
 * for wrong credentials, VALIDATION_ERROR for a scope that the client does not have.
 */
export async function grantToken(
  { clientId, clientSecret, scope }: TokenRequest,
  { clients, keys, nowMs }: TokenEndpoint,
): Promise<TokenGrant> {
  const client = clients.verifySecret(clientId, clientSecret);
  if (client === null) throw clientRefused("The client id or its secret is wrong");
  const { token } = await issueToken(keys.active(), {
    sub: client.owner,
    agentId: client.agentId,
    scope: narrowed(scope, client.scope),
    clientId: client.id,
    ttlSeconds: clientTokenSeconds,
    nowMs: nowMs(),
  });
  return { access_token: token, token_type: "Bearer", expires_in: clientTokenSeconds };
}

/** What was asked for, or all that the client may (RFC 6749 section 3.3); never more. */
function narrowed(asked: string, allowed: string): string {
  if (asked.trim() === "") return allowed;
  const scope = scopeOfGroups(asked);
  const opened = groupsOfScope(allowed);
  const exceeds = [...(groupsOfScope(scope) ?? [])].some((group) => opened?.has(group) === false);
  if (exceeds) throw invalid("scope", "is more than the client may");
  return scope;
}
