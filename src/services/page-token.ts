import { invalid } from "../domain/errors.ts";
import { problemOfString } from "../domain/json-text.ts";
import { limits } from "../domain/limits.ts";
import type { PageKey } from "../storage/port.ts";

/**
 * Page tokens are opaque to clients and grant nothing: the place where the last page ended, and the
 * filter they belong to.
 */
export interface PagePlace extends PageKey {
  /** Agents alone: whether the last item was an own one. */
  readonly isOwn?: boolean;
}

export function writePageToken(filter: string, { createdUs, id, isOwn }: PagePlace): string {
  const part = isOwn === undefined ? [] : [isOwn];
  return Buffer.from(JSON.stringify([filter, createdUs, id, ...part])).toString("base64url");
}

/** Throws VALIDATION_ERROR for garbage and for a token of another filter. */
export function readPageToken(filter: string, token: string): PagePlace | undefined {
  if (token === "") return undefined;
  const [ofFilter, createdUs, id, isOwn] = parse(token);
  if (!isTime(createdUs) || !isId(id)) throw notAToken();
  if (isOwn !== undefined && typeof isOwn !== "boolean") throw notAToken();
  if (ofFilter !== filter) throw invalid("page_token", "belongs to another filter");
  return isOwn === undefined ? { createdUs, id } : { createdUs, id, isOwn };
}

/** A page size: absent is the default, above the maximum is the maximum. */
export function pageSize(asked: number | undefined, absent: number): number {
  return Math.min(asked ?? absent, limits.pageSizeMax);
}

function parse(token: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (Array.isArray(value)) return value;
  } catch {
    // Falls through: anything that is not ours is the same to us.
  }
  throw notAToken();
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value);
}

function isId(value: unknown): value is string {
  return typeof value === "string" && problemOfString(value) === null;
}

function notAToken() {
  return invalid("page_token", "is not a page token of this service");
}
