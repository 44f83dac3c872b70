import { invalid } from "../../domain/errors.ts";

/** Parameters that are lists: repeated, or split at literal commas. */
const lists = new Set(["types", "entityIds", "kinds"]);

/** Reads a query string. Throws VALIDATION_ERROR when it is not percent-encoded UTF-8. */
export function readQuery(text: string): Record<string, string | string[]> {
  const values: Record<string, string | string[]> = {};
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    const [rawName = "", ...rest] = pair.split("=");
    const name = decode(rawName);
    const raw = rest.join("=");
    if (lists.has(name)) values[name] = [...(values[name] ?? []), ...raw.split(",").map(decode)];
    else values[name] = decode(raw);
  }
  return values;
}

function decode(raw: string): string {
  try {
    return decodeURIComponent(raw.replaceAll("+", " "));
  } catch {
    throw invalid("query", "must be percent-encoded UTF-8");
  }
}
