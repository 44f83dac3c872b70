import { ServiceError } from "../../../domain/errors.ts";
import type { ConflictReason, RecordDraft, SyncRecord } from "../../../domain/record.ts";

/** A record of a push that writes all or nothing, and why it was not accepted. */
export interface Refusal {
  readonly index: number;
  readonly draft: RecordDraft;
  readonly reason: ConflictReason;
  readonly current: SyncRecord | null;
}

export function refuseSinglePush(refusal: Refusal): ServiceError {
  const { draft, reason, current } = refusal;
  if (reason === "MUTATION_REUSED") return mutationReused(draft.mutationId);
  return new ServiceError("SYNC_CONFLICT", adviceOf(reason, refusal), {
    conflict: { reason, current },
  });
}

/** `draftCount`: how many records the batch had. */
export function refuseAtomicPush(refusals: readonly Refusal[], draftCount: number): ServiceError {
  const reused = refusals.find(({ reason }) => reason === "MUTATION_REUSED");
  if (reused !== undefined) return mutationReused(reused.draft.mutationId);
  const conflicts = refusals.map(({ index, reason, current }) => ({ index, reason, current }));
  return new ServiceError(
    "SYNC_CONFLICT",
    `Nothing was written: ${refusals.length} of ${draftCount} records conflict. Pull those of ` +
      "details.conflicts, merge, and push all again with greater versions.",
    { conflict: { conflicts } },
  );
}

/** Says where the server stands, and what to do. */
function adviceOf(
  reason: Exclude<ConflictReason, "MUTATION_REUSED">,
  { draft, current }: Refusal,
): string {
  const name = `${draft.type}/${draft.entityId}`;
  if (current === null) {
    return `${name} does not exist. Push it with expected revision 0, or with none.`;
  }
  const { version, revision } = current;
  switch (reason) {
    case "STALE_VERSION":
      return `${name} is at version ${version} already. ${mergeAndPush} a greater version.`;
    case "SAME_VERSION":
      return `${name} is at version ${version} with other content. ${mergeAndPush} a greater version.`;
    case "REVISION_MISMATCH":
      return (
        `${name} is at revision ${revision}, not ${draft.expectedRevision}. ` +
        `${mergeAndPush} that revision and a greater version.`
      );
  }
}

const mergeAndPush = "Merge with details.current and push";

function mutationReused(mutationId: string): ServiceError {
  return new ServiceError(
    "IDEMPOTENCY_CONFLICT",
    "This mutation id was accepted for another record, version or deletion. Use a new one.",
    { details: { mutationId } },
  );
}
