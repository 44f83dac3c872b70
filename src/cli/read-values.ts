import { UsageError } from "./exit.ts";

const words: ReadonlyMap<string, boolean> = new Map([
  ["1", true],
  ["true", true],
  ["yes", true],
  ["0", false],
  ["false", false],
  ["no", false],
]);

/** `name`: where the text comes from, for the message of the UsageError. So with all of these. */
export function readBoolean(name: string, text: string): boolean {
  const value = words.get(text.toLowerCase());
  if (value !== undefined) return value;
  throw new UsageError(`${name} must be 1, true, yes, 0, false or no, not ${text}`);
}

/** `on` or `off`. */
export function readOnOff(name: string, text: string): boolean {
  if (text === "on" || text === "off") return text === "on";
  throw new UsageError(`${name} must be on or off, not ${text}`);
}

/** A whole number of a range. */
export function readCount(
  name: string,
  text: string,
  [min, max]: readonly [number, number],
): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${name} must be a whole number from ${min} to ${max}, not ${text}`);
}

/** A TCP port; 0 for any free one. */
export function readPort(name: string, text: string): number {
  return readCount(name, text, [0, 65_535]);
}

const unitMs: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Reads `500ms`, `30s`, `5m`, `1h`, `30d` as milliseconds. `min` and `max` in the same words. */
export function readDurationMs(
  name: string,
  text: string,
  [min, max]: readonly [string, string],
): number {
  const value = durationMs(text);
  if (value >= durationMs(min) && value <= durationMs(max)) return value;
  throw new UsageError(
    `${name} must be a time from ${min} to ${max}, e.g. 30s, 5m, 1h, not ${text}`,
  );
}

/** NaN for what is none. */
function durationMs(text: string): number {
  const [, count, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  return Number(count) * (unitMs.get(unit ?? "") ?? Number.NaN);
}

/** Split at commas; spaces around an entry and empty entries do not count. */
export function splitList(text: string): readonly string[] {
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}
