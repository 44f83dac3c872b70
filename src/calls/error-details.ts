import { create, toBinary } from "@bufbuild/protobuf";
import {
  type SyncConflict,
  SyncConflictItemSchema,
  SyncConflictSchema,
} from "../../gen/sealflow/v1/errors_pb.ts";
import type { FieldViolation, ServiceError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { PushConflict } from "../domain/record.ts";
import {
  conflictReasons,
  toRecordWithin,
  toRecordWithoutData,
} from "../services/record-messages.ts";

/** What an error shows on every door alike, within its limits. */
export interface ShownDetails {
  readonly metadata: Readonly<Record<string, string | number>>;
  readonly fields: readonly FieldViolation[];
  /** Whether there are more fields than are shown. */
  readonly isTruncated: boolean;
  readonly conflict: SyncConflict | undefined;
}

/** Left for reason, metadata, retry hint and their envelopes. */
const listBytesMax = limits.errorDetailsBytesMax - 1024;

export function shownDetails({ facts }: ServiceError): ShownDetails {
  const all = facts.fields ?? [];
  const fields = firstWithin(all, ({ field, message }) => Buffer.byteLength(field + message) + 8);
  return {
    metadata: facts.details ?? {},
    fields,
    isTruncated: fields.length < all.length,
    conflict: facts.conflict === undefined ? undefined : shownConflict(facts.conflict),
  };
}

/** When to try again, in whole seconds, as `Retry-After` says it; undefined: not said. */
export function retryAfterSeconds({ facts }: ServiceError): string | undefined {
  if (facts.retryAfterMs === undefined) return undefined;
  return String(Math.max(1, Math.ceil(facts.retryAfterMs / 1000)));
}

function shownConflict(conflict: PushConflict): SyncConflict {
  if ("reason" in conflict) {
    const { reason, current } = conflict;
    return create(SyncConflictSchema, {
      reason: conflictReasons[reason],
      ...(current === null ? {} : { current: toRecordWithin(current, limits.errorDataBytesMax) }),
    });
  }
  const all = conflict.conflicts.map(({ index, reason, current }) =>
    create(SyncConflictItemSchema, {
      index,
      reason: conflictReasons[reason],
      ...(current === null ? {} : { current: toRecordWithoutData(current) }),
    }),
  );
  const conflicts = firstWithin(all, (item) => toBinary(SyncConflictItemSchema, item).length + 4);
  return create(SyncConflictSchema, { conflicts, truncated: conflicts.length < all.length });
}

/** As many as fit: twenty, and not above the size that clients take in a trailer. */
function firstWithin<T>(items: readonly T[], bytesOf: (item: T) => number): T[] {
  const shown: T[] = [];
  let bytes = 0;
  for (const item of items.slice(0, limits.errorListMax)) {
    bytes += bytesOf(item);
    if (bytes > listBytesMax) break;
    shown.push(item);
  }
  return shown;
}
