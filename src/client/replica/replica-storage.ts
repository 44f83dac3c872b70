/** Which record. */
export interface RecordName {
  /** 1 to 64 characters. */
  readonly type: string;
  /** 1 to 256 characters. */
  readonly entityId: string;
}

/** A record as the server has it. */
export interface StoredRecord extends RecordName {
  readonly version: string;
  readonly deleted: boolean;
  /** The server's count of its changes, from 1. */
  readonly revision: number;
  /** As it came: sealed, if the replica has a key. */
  readonly encryptedData: string;
}

/** A push that the server has not acknowledged. */
export interface PendingPush extends RecordName {
  /** Its place in the outbox, unique. Sent from the least on. */
  readonly order: number;
  readonly mutationId: string;
  readonly version: string;
  readonly deleted: boolean;
  readonly encryptedData: string;
  /**
   * The revision it was made on, 0 for no record. That of one behind another push of its record
   * counts only once that is acknowledged, and is set then.
   */
  readonly expectedRevision: number;
}

/** How far the replica has come, in which history of the server. */
export interface Position {
  /** 0 before the first pull. */
  readonly cursor: number;
  /** Empty before the first pull. */
  readonly epoch: string;
}

/** All that a replica keeps. */
export interface StoredState {
  readonly position: Position;
  readonly records: readonly StoredRecord[];
  /** By `order`. */
  readonly pushes: readonly PendingPush[];
}

/** What changes together. Things are taken out before others are put in. */
export interface StoredChange {
  readonly position?: Position;
  /** Put in the place of those of the same name. */
  readonly records?: readonly StoredRecord[];
  /** Records that are no more. */
  readonly removed?: readonly RecordName[];
  /** Put in the place of those of the same `order`. */
  readonly pushes?: readonly PendingPush[];
  /** Pushes that are no more, by their `order`. */
  readonly settled?: readonly number[];
}

/** Where a replica keeps what it has, for one owner at one server. */
export interface ReplicaStorage {
  /**
   * Opens it and reads all. From then on whoever had opened it before can no longer save.
   * @throws ReplicaError STORAGE_DAMAGED
   */
  open(): Promise<OpenStorage>;
}

/** The replica holds all of `state` in memory from then on, and calls one method at a time. */
export interface OpenStorage {
  /** As it was when it was opened. */
  readonly state: StoredState;
  /**
   * Stores a change whole or, if it rejects, not at all; once it resolves the change survives a
   * crash.
   * @throws ReplicaError STORAGE_TAKEN when another has opened it since
   */
  save(change: StoredChange): Promise<void>;
  /** Lets go of what is open. Nothing is called after. */
  close(): Promise<void>;
}

/** A name as one text. */
export function nameKey({ type, entityId }: RecordName): string {
  return JSON.stringify([type, entityId]);
}
