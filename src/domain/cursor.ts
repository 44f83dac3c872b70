/**
 * From here on a `since` is a cursor; below it, milliseconds since the epoch. As a position it is
 * the clock's in 1973: before all that a feed can hold.
 */
const firstCursor = 1e14;

/** A reading of `since`: everything live, or what lies after a position. */
export type Since =
  | { readonly kind: "all" }
  /** Exclusive; the cursor of an earlier answer. */
  | { readonly kind: "cursor"; readonly after: number }
  /** Exclusive position just before the millisecond that the caller named. */
  | { readonly kind: "time"; readonly after: number };

/** Reads a `since` by its magnitude. It is a whole number from 0 to 2^53 - 1. */
export function readSince(since: number): Since {
  if (since === 0) return { kind: "all" };
  // A lower position, given back as a cursor, would be read as a time much later.
  if (since < firstCursor) return { kind: "time", after: Math.max(since * 1000 - 1, firstCursor) };
  return { kind: "cursor", after: since };
}

/**
 * The next position of an owner's feed: the clock's microsecond, or one more than the last. A clock
 * that was never set makes no position that would be read as a time.
 */
export function nextPosition(head: number, nowUs: number): number {
  return Math.max(head + 1, nowUs, firstCursor + 1);
}
