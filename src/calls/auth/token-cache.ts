import type { Identity } from "./identity.ts";

/** Verified tokens by their digest, so that a token in use costs a look-up and not a signature. */
export interface TokenCache {
  get(digest: string): Identity | undefined;
  /** Verifies and remembers; callers with the same token share one verification. */
  fill(digest: string, verify: () => Promise<Identity>): Promise<Identity>;
  /** Forgets all, also what is being verified at this moment. */
  clear(): void;
}

interface Entry {
  readonly identity: Identity;
  readonly untilMs: number;
}

const keptMsMax = 300_000;

/** Keeps a token until it expires and 5 min at most; the least lately used make room. */
export function createTokenCache(entriesMax: number, nowMs: () => number): TokenCache {
  const entries = new Map<string, Entry>();
  const pending = new Map<string, Promise<Identity>>();
  let generation = 0;

  function remember(digest: string, identity: Identity): void {
    const untilMs = Math.min(nowMs() + keptMsMax, identity.expiresAtMs);
    entries.set(digest, { identity, untilMs });
    if (entries.size <= entriesMax) return;
    const [oldest] = entries.keys();
    if (oldest !== undefined) entries.delete(oldest);
  }
  return {
    get(digest) {
      const entry = entries.get(digest);
      if (entry === undefined) return undefined;
      entries.delete(digest);
      if (nowMs() >= entry.untilMs) return undefined;
      entries.set(digest, entry);
      return entry.identity;
    },
    fill(digest, verify) {
      const running = pending.get(digest);
      if (running !== undefined) return running;
      const begun = generation;
      const verified = verify()
        .then((identity) => {
          if (begun === generation) remember(digest, identity);
          return identity;
        })
        .finally(() => {
          if (pending.get(digest) === verified) pending.delete(digest);
        });
      pending.set(digest, verified);
      return verified;
    },
    clear() {
      generation += 1;
      entries.clear();
      pending.clear();
    },
  };
}
