const dayMs = 86_400_000;
const daysMax = 1000;
/** By day since the epoch: the text of the day up to `T`. Emptied when it is full. */
const days = new Map<number, string>();
const pairs = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, "0"));

/**
 * The time as `Date.prototype.toISOString` prints it (RFC 3339 for the years 0 to 9999), in a
 * tenth of its time: a page of a list prints forty. Throws RangeError for what is no time.
 */
export function isoTime(epochMs: number): string {
  const day = Math.floor(epochMs / dayMs);
  const ms = epochMs - day * dayMs;
  const clock = `${pairs[Math.floor(ms / 3_600_000)]}:${pairs[Math.floor(ms / 60_000) % 60]}`;
  const rest = String(Math.floor(ms) % 1000).padStart(3, "0");
  return `${textOf(day)}${clock}:${pairs[Math.floor(ms / 1000) % 60]}.${rest}Z`;
}

function textOf(day: number): string {
  const known = days.get(day);
  if (known !== undefined) return known;
  const text = new Date(day * dayMs).toISOString().slice(0, -"00:00:00.000Z".length);
  if (days.size >= daysMax) days.clear();
  days.set(day, text);
  return text;
}
