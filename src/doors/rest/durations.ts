interface DurationInit {
  readonly seconds: bigint;
  readonly nanos: number;
}

/** The largest that a google.protobuf.Duration holds: 10,000 years. */
const secondsMax = 315_576_000_000;

/** Reads `1.5`, `"1.5"` or `"1.5s"` as seconds; undefined when it is none of them. */
export function durationOf(value: unknown): DurationInit | undefined {
  const asked = typeof value === "string" ? secondsOf(value) : value;
  if (typeof asked !== "number") return undefined;
  const seconds = Math.max(-secondsMax, Math.min(asked, secondsMax));
  const whole = Math.trunc(seconds);
  return { seconds: BigInt(whole), nanos: Math.round((seconds - whole) * 1e9) };
}

function secondsOf(text: string): number | undefined {
  return /^-?\d+(\.\d+)?s?$/.test(text) ? Number.parseFloat(text) : undefined;
}

/** Writes a duration as `"1.5s"`. */
export function durationText({ seconds, nanos }: DurationInit): string {
  const fraction = String(nanos).padStart(9, "0").replace(/0+$/, "");
  return `${seconds}${fraction === "" ? "" : `.${fraction}`}s`;
}
