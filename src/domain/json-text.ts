import { limits } from "./limits.ts";

/**
 * What is wrong with a JSON text, or with a value that was parsed from one; null when nothing is.
 * NUL and lone surrogates are refused inside strings and keys too: not every store can hold them.
 */
export function problemOfJsonText(text: string): string | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "must be JSON text";
  }
  return problemOfJson(value);
}

export function problemOfJson(value: unknown, depth = 0): string | null {
  if (typeof value === "string") return problemOfString(value);
  if (typeof value !== "object" || value === null) return null;
  if (depth >= limits.jsonDepthMax) return `must not be nested deeper than ${limits.jsonDepthMax}`;
  for (const [key, member] of Object.entries(value)) {
    const problem = problemOfString(key) ?? problemOfJson(member, depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

export function problemOfString(text: string): string | null {
  if (text.includes("\0")) return "must not hold NUL";
  return text.isWellFormed() ? null : "must not hold a lone surrogate";
}

/** Only such numbers may be more precise than JavaScript's. */
const longNumber = /\d{16}|\d[eE]|\.\d{15}/;

/**
 * Parses JSON for being written again: a number that JavaScript would change keeps its own text.
 * Throws SyntaxError.
 */
export function parseJson(text: string): unknown {
  return longNumber.test(text) ? JSON.parse(text, keepText) : JSON.parse(text);
}

/** The platform's own (ECMAScript's JSON.parse with source text), which the compiler lacks yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

function keepText(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || context?.source === undefined) return value;
  return String(value) === context.source ? value : rawJSON(context.source);
}

/** The same text for equal values: keys sorted, at every depth. Assumes a checked JSON text. */
export function canonicalJson(text: string): string {
  return JSON.stringify(JSON.parse(text), (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
