import { invalid } from "../../domain/errors.ts";
import type { Group } from "../../domain/groups.ts";

const scopePrefix = "sealflow:";

/** What a scope word opens. */
const opens = {
  auth: ["auth"],
  sync: ["sync"],
  workflows: ["workflows", "executions"],
  agents: ["agents", "executions"],
  executions: ["executions"],
  tasks: ["tasks"],
} as const satisfies Record<Group, readonly Group[]>;

/**
 * The groups that a `scope` claim opens; null = all, when no word of it is ours. A word
 * `sealflow:X` of an unknown group counts and opens nothing, so it narrows and never widens.
 */
export function groupsOfScope(scope: string | undefined): ReadonlySet<Group> | null {
  const words = wordsOf(scope ?? "").filter((word) => word.startsWith(scopePrefix));
  if (words.length === 0) return null;
  const names = words.map((word) => word.slice(scopePrefix.length));
  return new Set(names.filter(isGroup).flatMap((group) => opens[group]));
}

/**
 * The `scope` claim for a list of groups, e.g. `agents,tasks`: separated by commas or spaces, each
 * with or without `sealflow:`. Empty for an empty list. Throws VALIDATION_ERROR for another word.
 */
export function scopeOfGroups(list: string): string {
  return [...new Set(wordsOf(list.replaceAll(",", " ")).map(scopeWord))].join(" ");
}

function scopeWord(word: string): string {
  const group = word.startsWith(scopePrefix) ? word.slice(scopePrefix.length) : word;
  if (isGroup(group)) return scopePrefix + group;
  throw invalid("scope", `must be made of ${Object.keys(opens).join(", ")}`);
}

function wordsOf(text: string): string[] {
  return text.split(" ").filter((word) => word !== "");
}

function isGroup(name: string): name is Group {
  return Object.hasOwn(opens, name);
}
