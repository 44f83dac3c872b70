import { ServiceError } from "../domain/errors.ts";

/** What tells that nobody waits for the answer any more. */
export interface Departure {
  /** Aborts when the caller has left. */
  readonly signal: AbortSignal;
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
  const { signal, deadlineMs } = departure;
  const { promise: left, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(departureError(departure));
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = deadlineMs === undefined ? undefined : timerFor(deadlineMs, onAbort);
  // Whoever loses the race must not end the process.
  work.catch(() => {});
  try {
    return await Promise.race([left, work]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function timerFor(deadlineMs: number, onTime: () => void): NodeJS.Timeout {
  return setTimeout(onTime, Math.min(deadlineMs - performance.now(), 2 ** 31 - 1));
}

/** The failure of the wire; else CANCELLED, or DEADLINE_EXCEEDED once the deadline has passed. */
export function departureError({ deadlineMs, failure }: Departure): ServiceError {
  if (failure !== undefined) return failure;
  return deadlineMs !== undefined && performance.now() >= deadlineMs - 1
    ? new ServiceError("DEADLINE_EXCEEDED", "The deadline of the call has passed")
    : new ServiceError("CANCELLED", "The caller has left");
}
