import { limits } from "../../../domain/limits.ts";
import type {
  ConflictReason,
  PushOutcome,
  PushStatus,
  RecordDraft,
  SyncRecord,
} from "../../../domain/record.ts";
import { compareVersions } from "../../../domain/version.ts";
import type { Change, RecordStore } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import { type Positions, Touches } from "../ledger.ts";
import { type Refusal, refuseAtomicPush, refuseSinglePush } from "./push-refusals.ts";
import {
  createRecordRows,
  type MutationRow,
  type RecordRows,
  type StateRow,
  toRecord,
} from "./record-rows.ts";

type Pushed = Parameters<RecordStore["pushRecords"]>[1];
type Accepted = Exclude<PushOutcome, { readonly status: "conflict" }>;
type Refused = {
  readonly status: "conflict";
  readonly reason: ConflictReason;
  readonly state: StateRow | undefined;
};

/** The promise of `pushRecords`; only to be used inside a write. */
export function createPusher(
  context: SqliteContext,
): (owner: string, pushed: Pushed) => Change<readonly PushOutcome[]> {
  const rows = createRecordRows(context.db);
  return (owner, pushed) => {
    const attempt = new Attempt(context, rows, { owner, agentId: pushed.agentId });
    const result = pushed.mode === "each" ? pushEach(attempt, pushed) : pushAll(attempt, pushed);
    attempt.positions.save();
    return { result, touched: attempt.touched };
  };
}

/** Reports every conflict, with the server's data until the answer is full. */
function pushEach(attempt: Attempt, { drafts }: Pushed): readonly PushOutcome[] {
  let bytesLeft: number = limits.pageBytesMax;
  return drafts.map((draft): PushOutcome => {
    const outcome = attempt.push(draft);
    if (outcome.status !== "conflict") return outcome;
    const { status, reason, state } = outcome;
    if (state === undefined) return { status, reason, current: null };
    if (state.dataBytes > bytesLeft) {
      return { status, reason, current: toRecord(draft, state, ""), dataOmitted: true };
    }
    bytesLeft -= state.dataBytes;
    return { status, reason, current: attempt.readCurrent(draft, state) };
  });
}

/** Throws when any is refused, and so undoes all. */
function pushAll(attempt: Attempt, { drafts, mode }: Pushed): readonly PushOutcome[] {
  const accepted: Accepted[] = [];
  const refusals: Refusal[] = [];
  for (const [index, draft] of drafts.entries()) {
    const outcome = attempt.push(draft);
    if (outcome.status !== "conflict") {
      accepted.push(outcome);
      continue;
    }
    const { reason, state } = outcome;
    if (mode === "single") {
      const current = state === undefined ? null : attempt.readCurrent(draft, state);
      throw refuseSinglePush({ index, draft, reason, current });
    }
    const current = state === undefined ? null : toRecord(draft, state, "");
    refusals.push({ index, draft, reason, current });
  }
  if (refusals.length > 0) throw refuseAtomicPush(refusals, drafts.length);
  return accepted;
}

/** One push under way: tries each draft by the rules, in their order. */
class Attempt {
  readonly touched = new Touches();
  readonly positions: Positions;
  readonly #rows: RecordRows;
  readonly #owner: string;
  readonly #agentId: string;
  readonly #nowUs: number;

  constructor(
    context: SqliteContext,
    rows: RecordRows,
    { owner, agentId }: { readonly owner: string; readonly agentId: string },
  ) {
    this.positions = context.ledger.positions(owner);
    this.#rows = rows;
    this.#owner = owner;
    this.#agentId = agentId;
    this.#nowUs = context.clock.wallUs();
  }

  push(draft: RecordDraft): Accepted | Refused {
    const owner = this.#owner;
    const { type, entityId, mutationId } = draft;
    const known =
      mutationId === "" ? undefined : this.#rows.readMutation.get({ owner, mutationId });
    if (known !== undefined && isRepeat(draft, known)) {
      return { status: known.status, record: toRecord(known, known, "") };
    }
    const state = this.#rows.readState.get({ owner, type, entityId });
    if (known !== undefined) return { status: "conflict", reason: "MUTATION_REUSED", state };
    if (state !== undefined && this.#isStored(draft, state)) {
      return this.#remember(draft, "unchanged", toRecord(draft, state, ""));
    }
    const reason = conflictOf(draft, state);
    if (reason !== null) return { status: "conflict", reason, state };
    return this.#remember(draft, statusOf(draft, state), this.#store(draft, state));
  }

  /** The server's record with its data. */
  readCurrent({ type, entityId }: RecordDraft, state: StateRow): SyncRecord {
    const found = this.#rows.readData.get({ owner: this.#owner, type, entityId });
    return toRecord({ type, entityId }, state, found?.encryptedData ?? "");
  }

  #isStored(draft: RecordDraft, state: StateRow): boolean {
    return (
      draft.deleted === state.deleted &&
      compareVersions(draft.version, state.version) === 0 &&
      Buffer.byteLength(draft.encryptedData) === state.dataBytes &&
      draft.encryptedData === this.readCurrent(draft, state).encryptedData
    );
  }

  #store(draft: RecordDraft, state: StateRow | undefined): SyncRecord {
    const row = {
      version: draft.version,
      deleted: draft.deleted,
      revision: (state?.revision ?? 0) + 1,
      agentId: this.#agentId,
      createdUs: state?.createdUs ?? this.#nowUs,
      updatedUs: this.#nowUs,
      seq: this.positions.take(),
    };
    this.touched.feed(this.#owner);
    const { type, entityId, encryptedData } = draft;
    this.#rows.upsert.run({ owner: this.#owner, type, entityId, encryptedData, ...row });
    return toRecord(draft, row, "");
  }

  /** Notes what is answered under the draft's mutation id, if it has one. */
  #remember(draft: RecordDraft, status: MutationRow["status"], record: SyncRecord): Accepted {
    const { type, entityId, mutationId, version, deleted } = draft;
    if (mutationId !== "") {
      this.#rows.insertMutation.run({
        owner: this.#owner,
        mutationId,
        type,
        entityId,
        version,
        deleted,
        status,
        revision: record.revision,
        seq: record.cursor,
        agentId: record.agentId,
        createdUs: record.createdUs,
        updatedUs: record.updatedUs,
        acceptedUs: this.#nowUs,
      });
    }
    return { status, record };
  }
}

/** Whether the id stands for this draft. The data does not count: a retry may be sealed anew. */
function isRepeat(draft: RecordDraft, known: MutationRow): boolean {
  return (
    draft.type === known.type &&
    draft.entityId === known.entityId &&
    draft.version === known.version &&
    draft.deleted === known.deleted
  );
}

/** The stored version is the greatest ever accepted; a tombstone is a row like any other. */
function conflictOf(draft: RecordDraft, state: StateRow | undefined): ConflictReason | null {
  const revision = state?.revision ?? 0;
  if ((draft.expectedRevision ?? revision) !== revision) return "REVISION_MISMATCH";
  if (state === undefined) return null;
  const order = compareVersions(draft.version, state.version);
  if (order > 0) return null;
  return order < 0 ? "STALE_VERSION" : "SAME_VERSION";
}

function statusOf(
  draft: RecordDraft,
  state: StateRow | undefined,
): Exclude<PushStatus, "unchanged" | "conflict"> {
  if (draft.deleted) return "deleted";
  return state === undefined ? "created" : "updated";
}
