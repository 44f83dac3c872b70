/** The middle of the values, or the mean of the two in the middle. Throws RangeError for none. */
export function median(values: readonly number[]): number {
  return (quantile(values, 0.5, Math.floor) + quantile(values, 0.5, Math.ceil)) / 2;
}

/** The value that a share `q` (0 to 1) of the values does not exceed. Throws RangeError for none. */
export function percentile(values: readonly number[], q: number): number {
  return quantile(values, q, Math.ceil);
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: percentile(values, 0), max: percentile(values, 1) };
}

function quantile(values: readonly number[], q: number, round: (at: number) => number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[round(q * (sorted.length - 1))];
  if (value === undefined) throw new RangeError("no values");
  return value;
}
