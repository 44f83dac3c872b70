import { setTimeout as pause } from "node:timers/promises";
import { issueToken } from "../calls/auth/issuer.ts";
import { scopeOfGroups } from "../calls/auth/scope.ts";
import { hasSigningKey, loadSigningKeys } from "../calls/auth/signing-keys.ts";
import type { AgentCredentials, TokenSource } from "../client/agent.ts";
import { CommandError, UsageError } from "./exit.ts";

/** The ways to say who the agent works for. */
export interface CredentialValues {
  readonly id: string;
  readonly token: string | undefined;
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  readonly sub: string | undefined;
  readonly dataDir: string;
}

/** Exactly one of the ways. Throws UsageError; CommandError when there is no key to sign with. */
export async function agentCredentials(values: CredentialValues): Promise<AgentCredentials> {
  const { token, clientId, clientSecret, sub, dataDir } = values;
  const client = clientId ?? clientSecret;
  const ways = [token, client, sub].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    const what = ways.length === 0 ? "credentials are missing" : "credentials are given twice";
    throw new UsageError(
      `${what}: set SEALFLOW_TOKEN, or SEALFLOW_CLIENT_ID and SEALFLOW_CLIENT_SECRET, ` +
        "or on the server's machine use --sub OWNER",
    );
  }
  if (token !== undefined) return { token };
  if (sub === undefined) {
    if (clientId !== undefined && clientSecret !== undefined) {
      return { credentials: { clientId, clientSecret } };
    }
    throw new UsageError("SEALFLOW_CLIENT_ID and SEALFLOW_CLIENT_SECRET belong together: set both");
  }
  if (await hasSigningKey(dataDir)) return { token: ownTokens({ dataDir, sub, id: values.id }) };
  throw new CommandError(
    `there is no signing key in ${dataDir}. --sub works on the server's machine with its ` +
      "--data-dir; elsewhere set SEALFLOW_TOKEN, or SEALFLOW_CLIENT_ID and SEALFLOW_CLIENT_SECRET",
  );
}

const ttlSeconds = 3600;
const renewAfterMs = 0.8 * ttlSeconds * 1000;
/** A server knows a key that was rotated in a second at most. */
const rotationMs = 1000;

interface OwnAgent {
  readonly dataDir: string;
  readonly sub: string;
  readonly id: string;
}

/** Tokens for this agent alone, each signed with the key that the data directory holds then. */
function ownTokens({ dataDir, sub, id }: OwnAgent): TokenSource {
  let held: { readonly text: string; readonly renewAtMs: number } | undefined;
  return async (refused) => {
    const nowMs = Date.now();
    if (held !== undefined && held.text !== refused && nowMs < held.renewAtMs) return held.text;
    if (refused !== undefined) await pause(rotationMs);
    const { active } = await loadSigningKeys(dataDir);
    const scope = scopeOfGroups("agents,tasks");
    const { token } = await issueToken(active, { sub, agentId: id, scope, ttlSeconds, nowMs });
    held = { text: token, renewAtMs: nowMs + renewAfterMs };
    return token;
  };
}
