import { sealRecord } from "../crypto.ts";
import type { SealingKey } from "../sealing-key.ts";
import type { LocalState } from "./local-state.ts";
import { ReplicaError } from "./replica-error.ts";
import type { PendingPush, RecordName } from "./replica-storage.ts";
import { compareVersions, isVersion, nextVersion } from "./version.ts";

/** What a device wants a record to be. */
export interface Draft extends RecordName {
  readonly data?: unknown;
  readonly deleted: boolean;
  /** Default: the next one. */
  readonly version: string | undefined;
}

/** No record comes so far: a push on it conflicts, whatever there is. */
export const noRevision = Number.MAX_SAFE_INTEGER;

const dataBytesMax = 1024 * 1024;
const proofBytesMax = 8 * 1024;

/**
 * A draft as it is sent, and sent again, with a version greater than `after`.
 * @throws ReplicaError BAD_RECORD, VERSION_NOT_GREATER; SealError BAD_KEY, BAD_PAYLOAD
 */
export async function newPush(
  state: LocalState,
  { data, ...draft }: Draft,
  {
    key,
    after,
    expectedRevision,
  }: {
    readonly key: SealingKey | undefined;
    readonly after: string | undefined;
    readonly expectedRevision: number;
  },
): Promise<PendingPush> {
  const { type, entityId, deleted } = draft;
  checkText("type", type, 64);
  checkText("entityId", entityId, 256);
  const version = draft.version ?? nextVersion(after);
  if (!isVersion(version)) throw bad("version", "must be a version like 1, 1.2 or 1.2.3-rc.1");
  if (after !== undefined && compareVersions(version, after) <= 0) {
    const message = `${type}/${entityId} is at version ${after}: ${version} is not greater`;
    throw new ReplicaError("VERSION_NOT_GREATER", message);
  }
  const binding = { type, entityId, version, deleted };
  const encryptedData = await sealedData(binding, deleted ? null : data, key);
  return {
    ...{ ...binding, encryptedData, expectedRevision },
    order: state.nextOrder(),
    mutationId: crypto.randomUUID(),
  };
}

async function sealedData(
  binding: Parameters<typeof sealRecord>[0],
  data: unknown,
  key: SealingKey | undefined,
): Promise<string> {
  const text = key === undefined ? (data ?? "") : await sealRecord(binding, data, key);
  if (typeof text !== "string") throw bad("data", "must be a text when the replica has no key");
  if (text === "" && binding.deleted !== true) throw bad("data", "must not be empty");
  if (!text.isWellFormed() || text.includes("\0")) throw bad("data", "has characters without text");
  const bytesMax = binding.deleted === true ? proofBytesMax : dataBytesMax;
  if (new TextEncoder().encode(text).length > bytesMax) {
    throw bad("data", `must have at most ${bytesMax} bytes, sealed`);
  }
  return text;
}

function checkText(field: string, text: string, charactersMax: number): void {
  const { length } = [...text.slice(0, charactersMax * 2 + 1)];
  if (length === 0 || length > charactersMax) {
    throw bad(field, `must have 1 to ${charactersMax} characters`);
  }
  if (!text.isWellFormed() || text.includes("\0")) throw bad(field, "has characters without text");
}

function bad(field: string, message: string): ReplicaError {
  return new ReplicaError("BAD_RECORD", `${field} ${message}`);
}
