/** Milliseconds of each unit of `grpc-timeout`. */
const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** At most eight digits and a unit (PROTOCOL-HTTP2.md); NaN for anything else. */
export function grpcTimeoutMs(text: string): number {
  const [, digits, unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return Number(digits) * (unitsMs[unit] ?? Number.NaN);
}

/** The longest that a timer can run, 24.8 days. */
const timerMsMax = 2 ** 31 - 1;

/**
 * Takes out a time-out that is longer than any timer runs: a timer that is asked for more is over at
 * once, and nobody waits for so long.
 */
export function dropEndlessTimeout(headers: Headers): void {
  const grpcMs = grpcTimeoutMs(headers.get("grpc-timeout") ?? "");
  if (grpcMs > timerMsMax) headers.delete("grpc-timeout");
  const connectMs = headers.get("connect-timeout-ms") ?? "";
  if (/^\d{1,10}$/.test(connectMs) && Number(connectMs) > timerMsMax) {
    headers.delete("connect-timeout-ms");
  }
}
