import {
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
} from "node:crypto";
import { SignJWT } from "jose";
import { loadSigningKeys } from "../../src/calls/auth/signing-keys.ts";
import type { TestServer } from "./server.ts";

type Claims = Record<string, unknown>;

/** Tokens that a server must not take, by what is wrong with each. */
export async function forgedTokens(server: TestServer): Promise<Record<string, string>> {
  const { active, accepted } = await loadSigningKeys(server.dataDir);
  const publicJwk = accepted.get(active.kid)?.publicJwk;
  const publicPem = accepted.get(active.kid)?.publicKey.export({ type: "spki", format: "pem" });
  const { kid } = active;
  const now = Math.floor(Date.now() / 1000);
  const good = { iss: "sealflow", aud: "sealflow", sub: "me", iat: now, exp: now + 600 };
  const { exp: _, ...withoutExp } = good;
  const sign = (claims: Claims, header: Claims = {}, key: KeyObject = active.privateKey) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid, ...header })
      .sign(key);
  const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const hs256 = { alg: "HS256" };
  const right = await sign(good);
  const [head = "", claims = "", signature = ""] = right.split(".");
  return {
    garbage: "garbage",
    "no signature": `${head}.${claims}.`,
    "alg none": `${encoded({ alg: "none", typ: "at+jwt" })}.${claims}.`,
    "alg none, its signature kept": `${encoded({ alg: "none", kid })}.${claims}.${signature}`,
    "other claims": `${head}.${encoded({ ...good, sub: "another" })}.${signature}`,
    "HS256 with the public key": await sign(good, hs256, secret(String(publicPem))),
    "HS256 with the public JWK": await sign(good, hs256, secret(JSON.stringify(publicJwk))),
    "HS256 with nothing like a secret": await sign(good, hs256, secret("x".repeat(32))),
    "another's key": await sign(good, {}, stranger.privateKey),
    "another's key, sent along": await sign(
      good,
      { jwk: stranger.publicKey.export({ format: "jwk" }) },
      stranger.privateKey,
    ),
    "a key that is not known": await sign(good, { kid: "unknown" }),
    "a path for a key": await sign(good, { kid: "../../../dev/null" }, stranger.privateKey),
    "the wrong issuer": await sign({ ...good, iss: "other" }),
    "the wrong audience": await sign({ ...good, aud: "other" }),
    "no audience": await sign({ ...good, aud: [] }),
    expired: await sign({ ...good, iat: now - 900, exp: now - 60 }),
    "not yet valid": await sign({ ...good, nbf: now + 120 }),
    "issued in the future": await sign({ ...good, iat: now + 120 }),
    "without exp": await sign(withoutExp),
    "exp as text": await sign({ ...withoutExp, exp: String(now + 600) }),
    "without sub": await sign({ ...good, sub: undefined }),
    "sub with NUL": await sign({ ...good, sub: "a\0b" }),
    "of another type": await sign(good, { typ: "JWT" }),
    "an extension that must be understood": signedAnyhow(
      { alg: "ES256", typ: "at+jwt", kid, crit: ["x"], x: 1 },
      { claims: good, key: active.privateKey },
    ),
    "too long": `${right}${"A".repeat(20_000)}`.slice(0, 15_000),
  };
}

/** With a header that no library would sign. */
function signedAnyhow(header: Claims, { claims, key }: { claims: Claims; key: KeyObject }): string {
  const text = `${encoded(header)}.${encoded(claims)}`;
  const signature = signBytes("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function secret(text: string): KeyObject {
  return createSecretKey(Buffer.from(text));
}
