import { shownDetails } from "../../calls/error-details.ts";
import type { ServiceError } from "../../domain/errors.ts";
import { conflictWord, recordHeadView, type View } from "./views.ts";

/** An error as REST shows it. */
export function errorView(error: ServiceError): View {
  const { metadata, fields, isTruncated, conflict } = shownDetails(error);
  const details: Record<string, unknown> = { ...metadata };
  if (fields.length > 0) {
    details.fields = fields.map(({ field, message }) => ({ field: jsonPath(field), message }));
  }
  if (conflict !== undefined && conflict.conflicts.length > 0) {
    details.conflicts = conflict.conflicts.map(({ index, reason, current }) => ({
      index,
      reason: conflictWord(reason),
      current: current && recordHeadView(current),
    }));
  } else if (conflict !== undefined) {
    details.reason = conflictWord(conflict.reason);
    details.current = conflict.current && recordHeadView(conflict.current);
  }
  if (isTruncated || conflict?.truncated === true) details.truncated = true;
  const message = error.reason === "VALIDATION_ERROR" ? jsonPaths(error) : error.message;
  return { success: false, error: { code: error.reason, message, details } };
}

/** `records[1].encrypted_data` is `records[1].encryptedData` in JSON. */
function jsonPath(field: string): string {
  return field
    .replace(/^tasks\[0\]\./, "")
    .replace(/\.names(?=\[|$)/, "")
    .replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function jsonPaths({ message, facts }: ServiceError): string {
  const field = facts.fields?.[0]?.field ?? "";
  return field === "" ? message : message.replace(field, jsonPath(field));
}
