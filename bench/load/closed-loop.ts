import { setTimeout } from "node:timers/promises";

/** What a load did: answers that came while it was measured, and how long that was. */
export interface Load {
  readonly count: number;
  readonly seconds: number;
  /** How long each answer took, in milliseconds. */
  readonly latenciesMs: readonly number[];
}

/** An answer that is not right: what was measured with it counts for nothing. */
export class VoidRound extends Error {
  constructor(message: string) {
    super(message);
    this.name = "VoidRound";
  }
}

/** How long after its end a round waits for answers that are under way. */
const patienceMs = 30_000;

/**
 * Keeps `width` calls under way: each of the callers begins its next call when its last one has
 * ended. Rejects with what `call` rejects with, and with VoidRound when an answer never comes.
 */
export async function closedLoop(
  { width, seconds }: { readonly width: number; readonly seconds: number },
  call: (caller: number) => Promise<void>,
): Promise<Load> {
  const latenciesMs: number[] = [];
  const beganMs = performance.now();
  const endMs = beganMs + seconds * 1000;
  const loop = async (caller: number) => {
    for (let atMs = performance.now(); atMs < endMs; ) {
      await call(caller);
      const nowMs = performance.now();
      if (nowMs < endMs) latenciesMs.push(nowMs - atMs);
      atMs = nowMs;
    }
  };
  const late = new AbortController();
  const lateness = setTimeout(seconds * 1000 + patienceMs, undefined, late).then(() => {
    throw new VoidRound("an answer has not come");
  });
  try {
    await Promise.race([Promise.all(Array.from({ length: width }, (_, i) => loop(i))), lateness]);
  } finally {
    late.abort();
    lateness.catch(() => {});
  }
  return { count: latenciesMs.length, seconds, latenciesMs };
}
