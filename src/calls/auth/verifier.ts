import { hash } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, errors } from "jose";
import type { Identity } from "./identity.ts";
import type { KeyRing } from "./key-ring.ts";
import { refusalOf, tokenRefused } from "./refusals.ts";
import { createTokenCache } from "./token-cache.ts";
import {
  builtInIssuer,
  type SharedSecret,
  sharedSecretIssuer,
  type TokenHint,
  type TokenIssuer,
} from "./token-issuers.ts";

export interface Verifier extends Disposable {
  /**
   * Who a token speaks for; at once when the token was verified lately. Throws or rejects with
   * UNAUTHORIZED and a message that names what is wrong; `isForgery` tells a refused signature.
   */
  verify(token: string): Identity | Promise<Identity>;
  /** Whether the identity's key is still accepted and its client still exists. */
  holds(identity: Identity): boolean;
}

export interface VerifierOptions {
  readonly keys: KeyRing;
  readonly sharedSecret?: SharedSecret | undefined;
  /** Asked after the built-in one and before the shared secret. */
  readonly issuers?: readonly TokenIssuer[];
  /** Clients of the token endpoint that exist now. */
  readonly clients: { has(clientId: string): boolean };
  /** The wall clock. */
  readonly nowMs: () => number;
  /** Verified tokens to remember. Default 50,000. */
  readonly cachedTokensMax?: number;
}

/** Longer than any token that a client could have use for; more is not even hashed. */
const tokenCharsMax = 16_384;

export function createVerifier(options: VerifierOptions): Verifier {
  const { clients, nowMs, cachedTokensMax = 50_000 } = options;
  const issuers = issuersOf(options);
  const cache = createTokenCache(cachedTokensMax, nowMs);
  const subscriptions = issuers.map((issuer) => issuer.onChange(() => cache.clear()));

  function withClient(identity: Identity): Identity {
    if (identity.clientId === "" || clients.has(identity.clientId)) return identity;
    throw tokenRefused("The client that this token was issued to does not exist any more");
  }
  return {
    verify(token) {
      if (token.length > tokenCharsMax) throw tokenRefused("The token is too long");
      const digest = hash("sha256", token, "base64url");
      const cached = cache.get(digest);
      if (cached !== undefined) return withClient(cached);
      return cache.fill(digest, () => prove(token, issuers)).then(withClient);
    },
    holds: ({ clientId, keyId }) =>
      (clientId === "" || clients.has(clientId)) && issuers.some((it) => it.holdsKey(keyId)),
    [Symbol.dispose]() {
      for (const subscription of subscriptions) subscription[Symbol.dispose]();
    },
  };
}

function issuersOf({ keys, sharedSecret, issuers = [], nowMs }: VerifierOptions): TokenIssuer[] {
  const builtIn = builtInIssuer(keys, nowMs);
  // Last, for it recognises every HS256 token.
  const shared = sharedSecret === undefined ? [] : [sharedSecretIssuer(sharedSecret, nowMs)];
  return [builtIn, ...issuers, ...shared];
}

async function prove(token: string, issuers: readonly TokenIssuer[]): Promise<Identity> {
  const hint = hintOf(token);
  const able = issuers.filter((issuer) => issuer.algorithms.includes(hint.alg));
  if (able.length === 0) throw refusalOf(new errors.JOSEAlgNotAllowed());
  const issuer = able.find((candidate) => candidate.recognises(hint));
  if (issuer === undefined)
    throw tokenRefused(`The token's "iss" is not one that is accepted here`);
  try {
    return await issuer.verify(token, hint);
  } catch (error) {
    throw refusalOf(error);
  }
}

function hintOf(token: string): TokenHint {
  try {
    const { alg, kid } = decodeProtectedHeader(token);
    return { alg: textOf(alg), kid: textOf(kid), iss: textOf(decodeJwt(token).iss) };
  } catch {
    throw refusalOf(new errors.JWTInvalid());
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
