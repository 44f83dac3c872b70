import type { DescField, DescMessage } from "@bufbuild/protobuf";

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** 64-bit integers are strings in Protobuf's JSON and numbers in ours. */
const int64Names = new Set(["cursor", "prevCursor", "revision", "maxBytes"]);
const jsonTextNames = new Set(["output", "input"]);
/** The kind of a failure stands beside its word in a message, and is not in REST. */
const leftOut = new Set(["failure"]);

/**
 * One form for an answer of any door: defaults left out, times to the millisecond, statuses as
 * REST words, JSON text as its value, field paths in camelCase.
 */
export function canonical(value: unknown, name = ""): Json {
  if (Array.isArray(value)) return value.map((item) => canonical(item, name));
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value)
      .filter(([key]) => !leftOut.has(key))
      .map(([key, member]) => [plainName(key), canonical(member, key)] as const)
      .filter(([key, member]) => !isDefault(member) || key === "output")
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(members);
  }
  if (typeof value === "string") return canonicalText(value, name);
  return value as Json;
}

/** A status of any kind is one member in REST. */
function plainName(name: string): string {
  return name.replace(/^(?:workflow|execution|agent)Status$/, "status");
}

function canonicalText(text: string, name: string): Json {
  if (int64Names.has(name)) return Number(text);
  if (jsonTextNames.has(name)) return text === "" ? "" : canonicalJson(text);
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return new Date(text).toISOString();
  if (name === "field") return camel(text);
  const word = /^(?:WORKFLOW|EXECUTION|AGENT|PUSH)_STATUS_([A-Z_]+)$/.exec(text)?.[1];
  if (word !== undefined) return restWord(word.toLowerCase());
  const kind = /^(?:UPDATE_KIND|GOING_AWAY_REASON)_([A-Z_]+)$/.exec(text)?.[1];
  if (kind !== undefined) return kind.toLowerCase();
  return /^SYNC_CONFLICT_REASON_([A-Z_]+)$/.exec(text)?.[1] ?? text;
}

function canonicalJson(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function restWord(word: string): string {
  return word === "draft" || word === "queued" ? "pending" : word;
}

function isDefault(value: Json): boolean {
  return (
    value === "" || value === 0 || value === false || (Array.isArray(value) && value.length === 0)
  );
}

function camel(path: string): string {
  return path
    .replace(/^tasks\[0\]\./, "")
    .replace(/\.names(?=\[|$)/, "")
    .replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A request written as a REST body, as what `create` takes for its message. */
export function toRequest(schema: DescMessage, request: Json): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(request ?? {})) {
    const field = schema.fields.find(({ localName }) => localName === name);
    if (field !== undefined) result[name] = toField(field, value as Json);
  }
  return result;
}

const statusNumbers: Readonly<Record<string, number>> = {
  pending: 1,
  running: 2,
  completed: 3,
  failed: 4,
  active: 1,
  inactive: 2,
};

/** The first is number 1. */
const updateKinds = [
  ...["ready", "state_upserted", "state_deleted", "up_to_date", "heartbeat", "going_away"],
  ...["workflow", "execution", "agent"],
];

function toField(field: DescField, value: Json): unknown {
  if (jsonTextNames.has(field.localName)) {
    return JSON.stringify(value);
  }
  if (field.fieldKind === "enum") return statusNumbers[String(value)] ?? 99;
  if (field.fieldKind === "list" && field.enum !== undefined) {
    return (value as Json[]).map((word) => updateKinds.indexOf(String(word)) + 1 || 99);
  }
  if (field.fieldKind === "scalar" && field.scalar === 3) return BigInt(value as number);
  if (field.message?.typeName === "google.protobuf.Duration") return toDuration(value);
  if (field.message?.typeName === "sealflow.v1.CapabilitySet") return { names: value };
  if (field.fieldKind === "list" && field.message !== undefined) {
    return (value as Json[]).map((item) => toRequest(field.message as DescMessage, item));
  }
  return field.message === undefined ? value : toRequest(field.message, value);
}

function toDuration(value: Json) {
  const seconds = Number.parseFloat(String(value));
  const whole = Math.trunc(seconds);
  return { seconds: BigInt(whole), nanos: Math.round((seconds - whole) * 1e9) };
}
