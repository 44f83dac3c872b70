import { createSecretKey } from "node:crypto";
import { errors, type JWTVerifyOptions, jwtVerify } from "jose";
import { invalid } from "../../domain/errors.ts";
import { commonChecks, identityOf } from "./claims.ts";
import type { Identity } from "./identity.ts";
import { accessTokenType, builtInAlgorithm, builtInName } from "./issuer.ts";
import type { KeyRing } from "./key-ring.ts";
import { tokenRefused } from "./refusals.ts";

/** What a token says of itself before anything is proven. It chooses the issuer, no more. */
export interface TokenHint {
  readonly alg: string;
  /** Empty: none. */
  readonly kid: string;
  /** Empty: none. */
  readonly iss: string;
}

/** Somebody whose tokens are accepted. Each has algorithms and keys of its own. */
export interface TokenIssuer {
  readonly algorithms: readonly string[];
  /** Whether the token claims to be of this issuer. */
  recognises(hint: TokenHint): boolean;
  /** Proves the token. Rejects with UNAUTHORIZED, or with an error of jose. */
  verify(token: string, hint: TokenHint): Promise<Identity>;
  /** Whether an identity's key is one that this issuer accepts now. */
  holdsKey(keyId: string): boolean;
  /** Calls the listener after every change of keys. */
  onChange(listener: () => void): Disposable;
}

export interface SharedSecret {
  /** At least 32 bytes. */
  readonly secret: string;
  /** Checked when given. */
  readonly issuer?: string;
  /** Checked when given. */
  readonly audience?: string;
}

const sharedSecretBytesMin = 32;
const sharedKeyId = "shared-secret";

/** The issuer whose keys lie in the data directory. */
export function builtInIssuer(keys: KeyRing, nowMs: () => number): TokenIssuer {
  return {
    algorithms: [builtInAlgorithm],
    recognises: ({ kid, iss }) => iss === builtInName || keys.find(kid) !== undefined,
    async verify(token, { kid }) {
      const key = keys.find(kid);
      if (key === undefined) {
        const fault = "The token is signed with a key that this server does not have";
        throw tokenRefused(fault, new errors.JWKSNoMatchingKey());
      }
      const now = nowMs();
      const { payload } = await jwtVerify(token, key.publicKey, {
        ...commonChecks(now),
        algorithms: [builtInAlgorithm],
        issuer: builtInName,
        audience: builtInName,
        typ: accessTokenType,
      });
      return identityOf(payload, { owner: asItIs, keyId: kid, namesOurClients: true }, now);
    },
    holdsKey: (keyId) => keys.find(keyId) !== undefined,
    onChange: (listener) => keys.onChange(listener),
  };
}

/** Whoever knows the secret. Throws VALIDATION_ERROR when it is too short to be one. */
export function sharedSecretIssuer(shared: SharedSecret, nowMs: () => number): TokenIssuer {
  const bytes = Buffer.from(shared.secret, "utf8");
  if (bytes.length < sharedSecretBytesMin) {
    throw invalid("jwt_secret", `must have at least ${sharedSecretBytesMin} bytes`);
  }
  const key = createSecretKey(bytes);
  const expected: JWTVerifyOptions = {
    ...(shared.issuer === undefined ? {} : { issuer: shared.issuer }),
    ...(shared.audience === undefined ? {} : { audience: shared.audience }),
  };
  return {
    algorithms: ["HS256"],
    recognises: () => true,
    async verify(token) {
      const now = nowMs();
      const { payload } = await jwtVerify(token, key, {
        ...commonChecks(now),
        ...expected,
        algorithms: ["HS256"],
      });
      return identityOf(
        payload,
        { owner: asItIs, keyId: sharedKeyId, namesOurClients: false },
        now,
      );
    },
    holdsKey: (keyId) => keyId === sharedKeyId,
    onChange: () => ({ [Symbol.dispose]() {} }),
  };
}

function asItIs(sub: string): string {
  return sub;
}
