import { createPublicKey, type KeyObject } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { JWK } from "jose";
import { ServiceError } from "../../domain/errors.ts";
import { type KeyDirectory, type KeyFile, openKeyDirectory } from "./key-files.ts";
import { ttlSecondsMax } from "./ttl.ts";

/** The built-in issuer's keys (ES256), as they are at one moment. */
export interface SigningKeys {
  /** The one to sign with. */
  readonly active: SigningKey;
  /** By kid: the active one, and retired ones whose tokens may still live. */
  readonly accepted: ReadonlyMap<string, AcceptedKey>;
}

export interface SigningKey {
  /** RFC 7638 thumbprint. */
  readonly kid: string;
  readonly privateKey: KeyObject;
}

export interface AcceptedKey {
  readonly kid: string;
  readonly publicKey: KeyObject;
  readonly publicJwk: JWK;
  /** Infinity for the active one. */
  readonly acceptedUntilMs: number;
}

/** A server that has not yet seen the rotation, and the leeway of the clocks. */
const retirementMarginMs = 60_000;

const readAttemptsMax = 3;
const readPauseMs = 20;

/** Reads the keys of a data directory. Throws UNAVAILABLE when there are none. */
export async function loadSigningKeys(dataDir: string): Promise<SigningKeys> {
  const keys = await readKeys(openKeyDirectory(dataDir));
  if (keys !== null) return keys;
  throw new ServiceError("UNAVAILABLE", `There is no signing key in ${dataDir}/keys`);
}

/** Whether a data directory has a key to sign with. */
export async function hasSigningKey(dataDir: string): Promise<boolean> {
  return (await readKeys(openKeyDirectory(dataDir))) !== null;
}

/** Reads the keys of a data directory, and makes the first one if there is none. */
export async function ensureSigningKey(dataDir: string): Promise<SigningKeys> {
  const directory = openKeyDirectory(dataDir);
  await directory.make();
  const found = await readKeys(directory);
  if (found !== null) return found;
  // An `active` whose key has gone names nothing: only then may it be replaced.
  const how = (await directory.activeKid()) === null ? "first" : "instead";
  const kid = await directory.add();
  if (!(await directory.activate(kid, how))) await directory.drop(kid);
  return loadSigningKeys(dataDir);
}

/**
 * Makes a new key the active one. The others are accepted until the last token that they can have
 * signed has expired: 30 days, the longest life of one. With `dropOld` they are gone at once.
 */
export async function rotateSigningKeys(
  dataDir: string,
  { dropOld, nowMs }: { readonly dropOld: boolean; readonly nowMs: number },
): Promise<SigningKeys> {
  const directory = openKeyDirectory(dataDir);
  await directory.make();
  await directory.activate(await directory.add(), "instead");
  for (const kid of await directory.kids()) {
    // Asked each time: a second rotation at this moment may have made it the active one.
    if (kid === (await directory.activeKid())) continue;
    const key = await directory.read(kid);
    if (dropOld || (key !== null && acceptedUntilMs(key) <= nowMs)) await directory.drop(kid);
    else await directory.retire(kid, nowMs);
  }
  return loadSigningKeys(dataDir);
}

/** null when there is no active key. Tries again when a rotation runs between its two looks. */
async function readKeys(directory: KeyDirectory): Promise<SigningKeys | null> {
  for (let attempt = 1; attempt <= readAttemptsMax; attempt += 1) {
    const kid = await directory.activeKid();
    if (kid === null) return null;
    const active = await directory.read(kid);
    if (active !== null) return { active, accepted: await readAccepted(directory, active) };
    await pause(readPauseMs);
  }
  return null;
}

async function readAccepted(
  directory: KeyDirectory,
  active: KeyFile,
): Promise<ReadonlyMap<string, AcceptedKey>> {
  const accepted = new Map([[active.kid, acceptedKey(active, Number.POSITIVE_INFINITY)]]);
  for (const kid of await directory.kids()) {
    const key = kid === active.kid ? null : await directory.read(kid);
    if (key !== null) accepted.set(kid, acceptedKey(key, acceptedUntilMs(key)));
  }
  return accepted;
}

function acceptedUntilMs({ retiredAtMs }: KeyFile): number {
  if (retiredAtMs === null) return Number.POSITIVE_INFINITY;
  return retiredAtMs + ttlSecondsMax * 1000 + retirementMarginMs;
}

function acceptedKey({ kid, privateKey }: KeyFile, untilMs: number): AcceptedKey {
  const publicKey = createPublicKey(privateKey);
  const { kty, crv, x, y } = publicKey.export({ format: "jwk" });
  if (kty === undefined || crv === undefined || x === undefined || y === undefined) {
    throw new TypeError("not a key of an elliptic curve");
  }
  const publicJwk = { kty, crv, x, y, kid, alg: "ES256", use: "sig" };
  return { kid, publicKey, publicJwk, acceptedUntilMs: untilMs };
}
