import { isKey, type RecordBinding } from "../client/crypto.ts";
import { UsageError } from "./exit.ts";
import type { OptionTable, Values } from "./options.ts";

/** Of `seal` and `open`. The record belongs to one call, so no variable names it. */
export const sealingOptions = {
  key: { kind: "secret", help: "the key, as seal --new-key prints it" },
  type: {
    kind: "text",
    placeholder: "TYPE",
    argumentOnly: true,
    help: "for a record's state: the record's type",
  },
  id: {
    kind: "text",
    placeholder: "ID",
    argumentOnly: true,
    help: "for a record's state: the record's entityId",
  },
  version: {
    kind: "text",
    placeholder: "VERSION",
    argumentOnly: true,
    help: "for a record's state: the version it is pushed as",
  },
  deleted: {
    kind: "flag",
    argumentOnly: true,
    help: "for a record's state: it is the proof of its deletion",
  },
} as const satisfies OptionTable;

type SealingValues = Values<typeof sealingOptions>;

export function keyOf({ key }: SealingValues): string {
  if (key === undefined) {
    throw new UsageError(
      "the key is missing: set SEALFLOW_KEY or use --key-file; seal --new-key makes one",
    );
  }
  return checkKey(key);
}

/** Never shows the key. */
export function checkKey(key: string): string {
  if (isKey(key)) return key;
  throw new UsageError("the key must be 43 characters of base64url, as seal --new-key prints it");
}

/** The record that the state is bound to; undefined when none is named. */
export function bindingOf(values: SealingValues): RecordBinding | undefined {
  const { type, id, version, deleted } = values;
  if (type !== undefined && id !== undefined && version !== undefined) {
    return { type, entityId: id, version, deleted };
  }
  if (type === undefined && id === undefined && version === undefined && !deleted) return undefined;
  throw new UsageError("the state of a record needs all of --type, --id and --version");
}
