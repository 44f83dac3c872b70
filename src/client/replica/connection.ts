import { isPermanent, pause, retryDelayMs } from "../backoff.ts";
import type { Conflicts } from "./conflicts.ts";
import { follow, pullToHead } from "./follower.ts";
import type { ReplicaParts } from "./replica-parts.ts";
import { sendOutbox } from "./sender.ts";

const backoff = { firstMs: 500, maxMs: 30_000 };
/** A connection that stood for so long was a good one: the pauses begin anew. */
const steadyMs = 60_000;

/**
 * Keeps the replica in step for as long as the signal is not aborted. However a connection ends,
 * the next begins after a pause.
 */
export async function keepInStep(
  parts: ReplicaParts,
  conflicts: Conflicts,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const startedAtMs = performance.now();
    const error = await connection(parts, conflicts, signal).catch((reason: unknown) => reason);
    if (signal.aborted) return;
    const wasSteady = performance.now() - startedAtMs >= steadyMs;
    failures = wasSteady ? 1 : failures + 1;
    // What is refused for good may be granted again some day; there is no hurry to ask.
    const counted = isPermanent(error) ? 30 : failures;
    const delayMs = retryDelayMs(counted, backoff, { error, random: parts.random });
    parts.emit({ kind: "offline", error, delayMs });
    await pause(delayMs, signal);
  }
}

/** Comes up to the head, then follows and sends, until one of both ends. */
async function connection(
  parts: ReplicaParts,
  conflicts: Conflicts,
  outer: AbortSignal,
): Promise<void> {
  await pullToHead(parts, outer);
  const end = new AbortController();
  const signal = AbortSignal.any([outer, end.signal]);
  const both = [follow(parts, signal), sendOutbox(parts, conflicts, signal)];
  try {
    await Promise.race(both);
  } finally {
    end.abort();
    await Promise.allSettled(both);
  }
}
