import { TaskFailedError } from "./agent-task.ts";

/** A failure as the service takes it. */
export interface ReportedFailure {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
}

const codeForm = /^[A-Za-z0-9._:/-]{1,64}$/;
/** The service's own words, which a report must not use. */
const ownWords: readonly string[] = [
  "AGENT_LOST",
  "OUTCOME_UNKNOWN",
  "SCHEDULE_TO_START",
  "EXECUTION",
];
const messageBytesMax = 4096;

/**
 * What a handler threw, as a report: its text, never its stack. The text of an error that was not
 * made for the owner may quote what was opened; so when the task was sealed it stays with the
 * agent.
 */
export function describeFailure(error: unknown, isSealed = false): ReportedFailure {
  const { code, retryable, retryAfterMs } = error instanceof TaskFailedError ? error.failure : {};
  const isUsable = code !== undefined && codeForm.test(code) && !ownWords.includes(code);
  const isKept = isSealed && !(error instanceof TaskFailedError);
  return {
    code: isUsable ? code : "AGENT_ERROR",
    message: isKept ? "The task failed; the agent keeps the reason" : messageOf(error),
    retryable: retryable ?? true,
    retryAfterMs: retryAfterMs !== undefined && retryAfterMs >= 0 ? retryAfterMs : undefined,
  };
}

/** Text without what the service refuses everywhere: NUL and lone surrogates. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return firstBytes(storable(text), messageBytesMax);
}

function firstBytes(text: string, bytesMax: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.byteLength <= bytesMax) return text;
  // A character that was cut decodes as U+FFFD, which takes three bytes itself.
  const start = new TextDecoder().decode(bytes.subarray(0, bytesMax - 3));
  return start.replace(/\uFFFD+$/, "");
}
