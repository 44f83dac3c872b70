import type { Fields } from "./fields.ts";

/** Reads one of some words; notes which there are when it is none of them. Empty is absent. */
export function readWord<T>(
  fields: Fields,
  name: string,
  words: Readonly<Record<string, T>>,
): T | undefined {
  const word = fields.text(name);
  if (word === undefined || word === "") return undefined;
  if (Object.hasOwn(words, word)) return words[word];
  const known = Object.keys(words).join(", ");
  fields.problems.push({ field: name, message: `must be one of ${known}` });
  return undefined;
}
