import type { Reason } from "../domain/errors.ts";

export type LogLevel = "error" | "warn" | "info";

/**
 * What a line may say, and nothing else: never a body, key, token, ciphertext or the text of an
 * error that holds one.
 */
export interface LogFields {
  readonly rpc?: string;
  readonly door?: string;
  readonly reason?: Reason;
  readonly durationMs?: number;
  readonly owner?: string;
  readonly agent?: string;
  readonly requestId?: string;
  readonly errorId?: string;
  /** The class, code and stack of a fault, without its message. */
  readonly fault?: string;
}

export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

/** JSON lines, one an event. */
export function createLog(write: (line: string) => void, now: () => Date): Log {
  return (level, message, fields = {}) => {
    write(`${JSON.stringify({ time: now().toISOString(), level, message, ...fields })}\n`);
  };
}

/**
 * A fault for the log: its class, its code and where it came from. Its message is left out: a
 * driver's may hold the values that were bound, which are ciphertext.
 */
export function describeFault(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  const code = "code" in cause ? ` ${String(cause.code)}` : "";
  // The stack begins with the message, whose own lines may look like frames.
  const stack = cause.stack ?? "";
  const at = stack.indexOf(cause.message);
  const frames = stack
    .slice(at < 0 ? stack.length : at + cause.message.length)
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .map((line) => line.trim());
  const origin = cause.cause === undefined ? "" : ` caused by ${describeFault(cause.cause)}`;
  return `${cause.name}${code} ${frames.slice(0, 8).join(" | ")}${origin}`;
}
