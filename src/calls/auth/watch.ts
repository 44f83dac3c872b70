import { type Identity, leewayMs } from "./identity.ts";
import type { Verifier } from "./verifier.ts";

/** Why an identity is worth nothing any more: its time is over, or its key or client has gone. */
export type IdentityEnd = "expired" | "revoked";

export interface IdentityWatch extends Disposable {
  /** Calls `onEnd` once, within a second of the end. Dispose of it when the stream ends first. */
  watch(identity: Identity, onEnd: (reason: IdentityEnd) => void): Disposable;
}

interface Watched {
  readonly identity: Identity;
  readonly untilMs: number;
  readonly onEnd: (reason: IdentityEnd) => void;
}

export interface IdentityWatchOptions {
  readonly verifier: Pick<Verifier, "holds">;
  /** The wall clock. */
  readonly nowMs: () => number;
  /** How often to look. Default 250; with the polls of keys and clients it stays under 1 s. */
  readonly pollMs?: number;
}

/** One timer for all: it follows a clock that steps, and knows no longest time-out. */
export function createIdentityWatch(options: IdentityWatchOptions): IdentityWatch {
  const { verifier, nowMs, pollMs = 250 } = options;
  const all = new Set<Watched>();
  let timer: NodeJS.Timeout | undefined;

  function stop(watched: Watched): void {
    all.delete(watched);
    if (all.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }
  function sweep(): void {
    const now = nowMs();
    for (const watched of [...all]) {
      const isExpired = now >= watched.untilMs;
      if (!isExpired && verifier.holds(watched.identity)) continue;
      stop(watched);
      watched.onEnd(isExpired ? "expired" : "revoked");
    }
  }
  return {
    watch(identity, onEnd) {
      const watched = { identity, untilMs: endMs(identity, nowMs()), onEnd };
      all.add(watched);
      timer ??= setInterval(sweep, pollMs).unref();
      return { [Symbol.dispose]: () => stop(watched) };
    },
    [Symbol.dispose]() {
      all.clear();
      clearInterval(timer);
      timer = undefined;
    },
  };
}

/** A token accepted only by leeway keeps it; else its stream would end and reopen in a circle. */
function endMs({ expiresAtMs }: Identity, nowMs: number): number {
  return nowMs < expiresAtMs ? expiresAtMs : expiresAtMs + leewayMs;
}
