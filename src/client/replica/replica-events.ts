import type { SealErrorCode } from "../seal-error.ts";
import type { RecordName } from "./replica-storage.ts";

interface Seen extends RecordName {
  readonly version: string;
  /** The server has not acknowledged it yet. */
  readonly isPending: boolean;
}

/** A record as this device sees it: with what it has pushed, acknowledged or not. */
export interface LiveRecord<Data = unknown> extends Seen {
  readonly deleted: false;
  /** What was pushed. Without a key, `encryptedData` as it came. */
  readonly data: Data;
}

/** A record that is no more. */
export interface DeletedRecord extends Seen {
  readonly deleted: true;
  readonly data?: undefined;
}

export type ReplicaRecord<Data = unknown> = LiveRecord<Data> | DeletedRecord;

/**
 * Why a record of the server is not believed. What the replica holds stays.
 *
 * - a code of SealError: the seal was not made for this record, version or deletion by the key
 * - `BAD_VERSION`: it has no readable version
 * - `VERSION_WENT_BACK`: the replica holds a greater version
 * - `SAME_VERSION`: the replica holds that version with other content
 */
export type RefusalCode = SealErrorCode | "BAD_VERSION" | "VERSION_WENT_BACK" | "SAME_VERSION";

/** A record of the server that is not believed. */
export interface Refusal extends RecordName {
  readonly code: RefusalCode;
  /** As the server says. */
  readonly version: string;
  readonly deleted: boolean;
}

/** What happens in a replica, told once it is stored. */
export type ReplicaEvent<Data = unknown> =
  /** Another device stored this. */
  | { readonly kind: "record"; readonly record: LiveRecord<Data> }
  /** Another device deleted this. */
  | { readonly kind: "deleted"; readonly record: DeletedRecord }
  /** The server has acknowledged what this device pushed. */
  | { readonly kind: "pushed"; readonly record: ReplicaRecord<Data> }
  /** The server has other than what this device wants to push: `onConflict` is asked. */
  | { readonly kind: "conflict"; readonly conflict: Conflict<Data> }
  /** The server sent what is not believed. */
  | { readonly kind: "refused"; readonly refusal: Refusal }
  /**
   * A push cannot be sent as it is: the server says so (`error` is a ConnectError), others wrote
   * between too often, or `onConflict` failed. It is kept, and tried again after the next `start`;
   * another `push` of the record takes its place, `discard` drops it.
   */
  | { readonly kind: "held"; readonly record: RecordName; readonly error: unknown }
  /** The stream stands. */
  | { readonly kind: "online" }
  /** All that the server had is here; what comes now is live. After each `online`. */
  | { readonly kind: "upToDate" }
  /** The stream ended or could not be opened; it is tried again after a pause. */
  | { readonly kind: "offline"; readonly error: unknown; readonly delayMs: number }
  /** A push failed on the way and is sent again after a pause. */
  | { readonly kind: "retrying"; readonly error: unknown; readonly delayMs: number }
  /**
   * The server was restored from a backup. The replica has pulled all of it, and pushes again the
   * `pushes` records which the server had lost.
   */
  | { readonly kind: "restored"; readonly epoch: string; readonly pushes: number };

/** Two devices changed the same record. */
export interface Conflict<Data = unknown> {
  /** What this device wants to push. */
  readonly local: ReplicaRecord<Data>;
  /** What the server has. Undefined when it has no such record, or none that is believed. */
  readonly server: ReplicaRecord<Data> | undefined;
  /** What the server has, if that is not believed. */
  readonly refusal: Refusal | undefined;
}

/**
 * What becomes of a conflict: `server` drops what this device wants to push, `local` pushes it over
 * the server's, anything else is pushed in its place.
 */
export type Resolution<Data = unknown> =
  | "server"
  | "local"
  | {
      readonly data: Data;
      readonly deleted?: false;
      /** Greater than both. Default: the next one. */
      readonly version?: string;
    }
  | { readonly deleted: true; readonly version?: string };

/** Tells of a record that changed elsewhere. */
export function changeOf(record: ReplicaRecord): ReplicaEvent {
  return record.deleted ? { kind: "deleted", record } : { kind: "record", record };
}
