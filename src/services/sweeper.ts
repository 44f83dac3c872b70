import type { ServiceParts } from "./call.ts";

const batchSize = 100;
/** An idle look, should a due time have been missed. */
const idleMs = 1000;

/**
 * Moves what is due, all the time: leases that ran out, time-outs, cancels whose grace is over.
 * Sleeps until the next due time, and looks every second besides.
 */
export function startSweeper(
  { store, wakeups, clock, stopping }: Omit<ServiceParts, "newId" | "random">,
  onFailure: (cause: unknown) => void,
): AsyncDisposable {
  let timer: NodeJS.Timeout | undefined;
  let round = Promise.resolve();

  async function sweep(): Promise<number> {
    const { result, touched } = await store.tasks.sweepTasks(batchSize);
    wakeups.announce(touched);
    const { nextDueUs } = result;
    const pauseMs = nextDueUs === null ? idleMs : (nextDueUs - clock.steadyUs()) / 1000;
    return Math.min(idleMs, Math.max(1, Math.ceil(pauseMs)));
  }

  function next(pauseMs: number): void {
    if (stopping.aborted) return;
    timer = setTimeout(() => {
      round = sweep()
        .catch((cause: unknown) => {
          onFailure(cause);
          return idleMs;
        })
        .then(next);
    }, pauseMs);
    timer.unref();
  }

  next(0);
  return {
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await round;
      clearTimeout(timer);
    },
  };
}
