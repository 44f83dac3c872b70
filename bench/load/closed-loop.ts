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

/**
 * Keeps `width` calls under way: each of the callers begins its next call when its last one has
 * ended. Rejects with what `call` rejects with, once all callers have ended.
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
  const callers = await Promise.allSettled(Array.from({ length: width }, (_, i) => loop(i)));
  for (const caller of callers) if (caller.status === "rejected") throw caller.reason;
  return { count: latenciesMs.length, seconds, latenciesMs };
}
