import { invalid } from "../../domain/errors.ts";

/** The longest life of a token: 30 days. A retired key is kept as long. */
export const ttlSecondsMax = 30 * 86_400;

const unitSeconds: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 3600],
  ["d", 86_400],
]);

/** Reads `90s`, `30m`, `1h`, `7d` as seconds. Throws VALIDATION_ERROR; at most 30 days. */
export function parseTtl(text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return checkTtl(Number(count) * (unitSeconds.get(unit ?? "") ?? Number.NaN));
}

/** The same seconds. Throws VALIDATION_ERROR unless they are a whole number up to 30 days. */
export function checkTtl(seconds: number): number {
  if (Number.isSafeInteger(seconds) && seconds >= 1 && seconds <= ttlSecondsMax) return seconds;
  throw invalid("ttl", "must be 1s to 30d, e.g. 90s, 30m, 1h, 7d");
}
