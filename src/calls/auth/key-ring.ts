import type { JWK } from "jose";
import { openKeyDirectory } from "./key-files.ts";
import { repeat } from "./repeat.ts";
import {
  type AcceptedKey,
  ensureSigningKey,
  loadSigningKeys,
  type SigningKey,
} from "./signing-keys.ts";

/** The signing keys, kept as they are in the data directory, whichever process changes them. */
export interface KeyRing extends Disposable {
  /** The one to sign with now. */
  active(): SigningKey;
  /** The key of that kid while its tokens are accepted. */
  find(kid: string): AcceptedKey | undefined;
  /** What /.well-known/jwks.json shows (RFC 7517 section 5). */
  publicJwks(): { readonly keys: readonly JWK[] };
  /** Calls the listener after every change. */
  onChange(listener: () => void): Disposable;
  /** Looks at once instead of with the next poll. */
  refresh(): Promise<void>;
}

export interface KeyRingOptions {
  readonly nowMs: () => number;
  /** How often to look for another process's change. Default 400. */
  readonly pollMs?: number;
  /** Told of a look that failed; the last good keys stay. */
  readonly onFailure?: (error: unknown) => void;
}

/** Opens the keys of a data directory, and makes the first one if there is none. */
export async function openKeyRing(dataDir: string, options: KeyRingOptions): Promise<KeyRing> {
  const { nowMs, pollMs = 400, onFailure } = options;
  const directory = openKeyDirectory(dataDir);
  const listeners = new Set<() => void>();
  let keys = await ensureSigningKey(dataDir);
  // Not the directory's as it is now: what changed during the load is found by the first look.
  let seen = "";
  const isAccepted = (key: AcceptedKey) => nowMs() < key.acceptedUntilMs;

  async function look(): Promise<void> {
    const fingerprint = await directory.fingerprint();
    if (fingerprint === seen) return;
    const loaded = await loadSigningKeys(dataDir);
    seen = fingerprint;
    keys = loaded;
    for (const listener of listeners) listener();
  }
  const polling = repeat({ everyMs: pollMs, work: look, onFailure });

  return {
    active: () => keys.active,
    find(kid) {
      const key = keys.accepted.get(kid);
      return key !== undefined && isAccepted(key) ? key : undefined;
    },
    publicJwks: () => ({
      keys: [...keys.accepted.values()].filter(isAccepted).map((key) => key.publicJwk),
    }),
    onChange(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    refresh: () => polling.now(),
    [Symbol.dispose]: () => polling[Symbol.dispose](),
  };
}
