/**
 * What went wrong in a replica itself.
 *
 * - `BAD_RECORD`: the service could not store this; the message says why
 * - `VERSION_NOT_GREATER`: the replica, or the other side of a conflict, has that version or more
 * - `TOO_MANY_CONFLICTS`: others wrote between each time; what was to be pushed is held
 * - `EPOCH_CHANGED`: the server began a new history meanwhile; the replica looks again
 * - `FEED_GAP`: the feed skipped something or stands still; the replica goes on from what it has
 * - `SERVER_SILENT`: no heartbeat came for long; the replica connects again
 * - `STORAGE_TAKEN`: another replica has opened the same storage
 * - `STORAGE_DAMAGED`: what is stored was changed by something else, or is not a replica's
 * - `CLOSED`: the replica was closed
 */
export type ReplicaErrorCode =
  | "BAD_RECORD"
  | "VERSION_NOT_GREATER"
  | "TOO_MANY_CONFLICTS"
  | "EPOCH_CHANGED"
  | "FEED_GAP"
  | "SERVER_SILENT"
  | "STORAGE_TAKEN"
  | "STORAGE_DAMAGED"
  | "CLOSED";

/** Tell them apart by `code`. */
export class ReplicaError extends Error {
  readonly code: ReplicaErrorCode;

  constructor(code: ReplicaErrorCode, message: string) {
    super(message);
    this.name = "ReplicaError";
    this.code = code;
  }
}

export function storageTaken(place: string): ReplicaError {
  return new ReplicaError("STORAGE_TAKEN", `Another replica has opened ${place} since`);
}
