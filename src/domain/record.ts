/** The newest state of one entity of an owner. */
export interface SyncRecord {
  readonly type: string;
  readonly entityId: string;
  readonly encryptedData: string;
  readonly version: string;
  readonly deleted: boolean;
  readonly revision: number;
  /** Where its newest change stands in the feed. */
  readonly cursor: number;
  readonly agentId: string;
  readonly createdUs: number;
  readonly updatedUs: number;
}

export type PushStatus = "created" | "updated" | "deleted" | "unchanged" | "conflict";

/** Why a record was not accepted. */
export type ConflictReason =
  | "STALE_VERSION"
  | "SAME_VERSION"
  | "REVISION_MISMATCH"
  | "MUTATION_REUSED";

/** A record as it is pushed. */
export interface RecordDraft {
  readonly type: string;
  readonly entityId: string;
  readonly encryptedData: string;
  readonly version: string;
  readonly deleted: boolean;
  readonly mutationId: string;
  readonly expectedRevision?: number;
}

/**
 * What became of one record of a push. `record` is the stored one without its data, `current` the
 * server's: null if there is none, and without its data when those before it filled the answer.
 */
export type PushOutcome =
  | { readonly status: Exclude<PushStatus, "conflict">; readonly record: SyncRecord }
  | {
      readonly status: "conflict";
      readonly reason: ConflictReason;
      readonly current: SyncRecord | null;
      readonly dataOmitted?: true;
    };

/** What a SYNC_CONFLICT says: of a single push; of an atomic batch, whose records have no data. */
export type PushConflict =
  | { readonly reason: ConflictReason; readonly current: SyncRecord | null }
  | {
      readonly conflicts: readonly {
        readonly index: number;
        readonly reason: ConflictReason;
        readonly current: SyncRecord | null;
      }[];
    };

/** What a change of the feed is about. */
export type ChangeKind = "workflow" | "execution" | "agent";

/** The newest state of a workflow, an execution or an agent, without its content. */
export interface LifecycleChange {
  readonly kind: ChangeKind;
  readonly id: string;
  readonly workflowId: string;
  readonly agentId: string;
  /** The status in the words of its kind; empty when deleted. */
  readonly status: string;
  readonly deleted: boolean;
  readonly cursor: number;
  readonly timeUs: number;
}

/** One thing of the feed, in the order of the feed. */
export type FeedItem =
  | { readonly record: SyncRecord; readonly change?: never }
  | { readonly change: LifecycleChange; readonly record?: never };

/** Where an item stands in the feed. */
export function cursorOf(item: FeedItem): number {
  return item.record === undefined ? item.change.cursor : item.record.cursor;
}
