import { base64url, calculateJwkThumbprint } from "jose";
import { SealError } from "./seal-error.ts";

/** 32 bytes, or their base64url without padding (43 characters). */
export type SealingKey = Uint8Array | string;

const keyBytesCount = 32;
const keyText = /^[A-Za-z0-9_-]{43}$/;

/** A new random key, as base64url. Whoever has it opens what it sealed; nobody else does. */
export function newKey(): string {
  return base64url.encode(crypto.getRandomValues(new Uint8Array(keyBytesCount)));
}

/** Whether a text could be a key. */
export function isKey(text: string): boolean {
  return keyText.test(text);
}

/**
 * The name of a key in the header of what it seals: the first 16 characters of its JWK thumbprint
 * (RFC 7638, SHA-256). Tells keys apart and is of no use to find one.
 * @throws SealError BAD_KEY
 */
export async function keyId(key: SealingKey): Promise<string> {
  const thumbprint = await calculateJwkThumbprint({
    kty: "oct",
    k: base64url.encode(keyBytes(key)),
  });
  return thumbprint.slice(0, 16);
}

/** @throws SealError BAD_KEY; the message never holds the key. */
export function keyBytes(key: SealingKey): Uint8Array {
  if (typeof key === "string") {
    if (isKey(key)) return base64url.decode(key);
  } else if (key.byteLength === keyBytesCount) {
    return key;
  }
  throw new SealError("BAD_KEY", "A key is 32 bytes: as such, or as 43 characters of base64url");
}
