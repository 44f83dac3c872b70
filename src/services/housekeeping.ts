import type { Store } from "../storage/port.ts";
import type { Presence } from "./presence.ts";

const retireEveryMs = 5_000;
const pruneEveryMs = 60_000;
const pruneBatch = 200;

/** Slow work at the side: agents that fell silent, and rows that nobody can ask for any more. */
export function startHousekeeping(parts: {
  readonly store: Store;
  readonly presence: Presence;
  readonly stopping: AbortSignal;
  onFailure(cause: unknown): void;
}): AsyncDisposable {
  const retire = every(retireEveryMs, parts.onFailure, () => parts.presence.retire(parts.stopping));
  const prune = every(pruneEveryMs, parts.onFailure, () => pruneAll(parts));
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all([retire[Symbol.asyncDispose](), prune[Symbol.asyncDispose]()]);
    },
  };
}

/** In small batches, each a write of its own, so that no call waits long. */
async function pruneAll(parts: {
  readonly store: Store;
  readonly stopping: AbortSignal;
}): Promise<void> {
  let hasMore = true;
  while (hasMore && !parts.stopping.aborted) ({ hasMore } = await parts.store.prune(pruneBatch));
}

function every(
  ms: number,
  onFailure: (cause: unknown) => void,
  work: () => Promise<void>,
): AsyncDisposable {
  let round: Promise<void> | undefined;
  const timer = setInterval(() => {
    round ??= work()
      .catch(onFailure)
      .finally(() => {
        round = undefined;
      });
  }, ms);
  timer.unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await round;
    },
  };
}
