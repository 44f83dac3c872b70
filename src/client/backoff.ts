import { Code, ConnectError } from "@connectrpc/connect";
import { reasonOf } from "./error-reason.ts";

/** The pauses between the tries of one call. */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * How long to pause after the `failures`-th failure in a row, from 1: up to twice as long each
 * time, with full jitter, so that many agents do not come back at once; and never less than the
 * server asked for.
 */
export function retryDelayMs(
  failures: number,
  { firstMs, maxMs }: Backoff,
  { error, random }: { readonly error: unknown; readonly random: () => number },
): number {
  const ceilingMs = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round((reasonOf(error)?.retryAfterMs ?? 0) + random() * ceilingMs);
}

const permanentCodes: ReadonlySet<Code> = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.InvalidArgument,
  Code.Unimplemented,
  Code.AlreadyExists,
]);

/** Whether the same call would fail in the same way again. */
export function isPermanent(error: unknown): boolean {
  if (reasonOf(error)?.reason === "PAYLOAD_TOO_LARGE") return true;
  return permanentCodes.has(ConnectError.from(error).code);
}

/** Waits, or less long when a signal is aborted; hardly, when the time is over. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const timer = setTimeout(end, Math.max(0, ms));
    signal?.addEventListener("abort", end, { once: true });
    function end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    }
  });
}
