import { ServiceError } from "../domain/errors.ts";

/** What tells that nobody waits for the answer any more. */
export interface Departure {
  /** Aborts when the caller has left. */
  readonly signal: AbortSignal;
  /**
   * Calls back once when the caller has left, at once when he has: what a wire has for less than a
   * signal costs. The latest to ask is called. Absent: the signal tells.
   */
  onLeft?(tell: () => void): void;
  /** The caller's own deadline by performance.now(); undefined: none. */
  readonly deadlineMs: number | undefined;
  /** Why the wire itself has ended the call, once it has. */
  readonly failure?: ServiceError | undefined;
}

/** A body must arrive in time even when its caller has set no deadline. */
const bodyMs = 30_000;

/** As `untilLeft`, for what a body brings. */
export function untilBody<T>(departure: Departure, work: Promise<T>): Promise<T> {
  const lastMs = performance.now() + bodyMs;
  if (departure.deadlineMs !== undefined && departure.deadlineMs <= lastMs) {
    return untilLeft(departure, work);
  }
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = timerFor(lastMs, () => reject(bodyLate()));
  const ended = untilLeft(departure, Promise.race([work, late]));
  return ended.finally(() => clearTimeout(timer));
}

function bodyLate(): ServiceError {
  const message = `The body did not arrive within ${bodyMs / 1000} s`;
  return new ServiceError("DEADLINE_EXCEEDED", message);
}

/** Settles as `work` does, or rejects with CANCELLED or DEADLINE_EXCEEDED as soon as that is so. */
export async function untilLeft<T>(departure: Departure, work: Promise<T>): Promise<T> {
  const { deadlineMs } = departure;
  const { promise: left, reject } = Promise.withResolvers<never>();
  const forget = listen(departure, () => reject(departureError(departure)));
  const onTime = () => reject(deadlinePassed());
  const timer = deadlineMs === undefined ? undefined : timerFor(deadlineMs, onTime);
  // Whoever loses the race must not end the process.
  work.catch(() => {});
  try {
    return await Promise.race([left, work]);
  } finally {
    clearTimeout(timer);
    forget?.();
  }
}

/** Answers how to be told no more, where that is needed. */
function listen(departure: Departure, tell: () => void): (() => void) | undefined {
  if (departure.onLeft !== undefined) {
    departure.onLeft(tell);
    return undefined;
  }
  const { signal } = departure;
  if (signal.aborted) tell();
  signal.addEventListener("abort", tell, { once: true });
  return () => signal.removeEventListener("abort", tell);
}

/** (At once when it has passed: a timer would let what is quick go first.) */
function timerFor(deadlineMs: number, onTime: () => void): NodeJS.Timeout | undefined {
  const leftMs = deadlineMs - performance.now();
  if (leftMs > 0) return setTimeout(onTime, Math.min(leftMs, 2 ** 31 - 1));
  onTime();
  return undefined;
}

/** A timer is early by what the loop was busy for; and who leaves that close has not left early. */
const timerSlackMs = 100;

/** The failure of the wire; else CANCELLED, or DEADLINE_EXCEEDED once the deadline has passed. */
export function departureError({ deadlineMs, failure }: Departure): ServiceError {
  if (failure !== undefined) return failure;
  return deadlineMs !== undefined && performance.now() >= deadlineMs - timerSlackMs
    ? deadlinePassed()
    : new ServiceError("CANCELLED", "The caller has left");
}

function deadlinePassed(): ServiceError {
  return new ServiceError("DEADLINE_EXCEEDED", "The deadline of the call has passed");
}
