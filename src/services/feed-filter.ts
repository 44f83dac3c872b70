import { UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import type { Since } from "../domain/cursor.ts";
import { ServiceError } from "../domain/errors.ts";
import type { Group } from "../domain/groups.ts";
import type { ChangeKind } from "../domain/record.ts";
import type { FeedQuery } from "../storage/port.ts";
import type { Call } from "./call.ts";

export type FeedFilter = Pick<
  FeedQuery,
  "withRecords" | "withTombstones" | "kinds" | "types" | "entityIds" | "exceptAgentId"
>;

interface AskedFilter {
  readonly kinds: readonly UpdateKind[];
  readonly types: readonly string[];
  readonly entityIds: readonly string[];
}

const lifecycle: readonly (readonly [UpdateKind, ChangeKind, Group])[] = [
  [UpdateKind.WORKFLOW, "workflow", "workflows"],
  [UpdateKind.EXECUTION, "execution", "executions"],
  [UpdateKind.AGENT, "agent", "agents"],
];

/** What pull and subscribe narrow alike. Throws FORBIDDEN for a kind outside the token's scope. */
export function feedFilter(
  call: Call,
  { kinds, types, entityIds }: AskedFilter,
  exceptOwn: boolean,
): FeedFilter {
  const changes = lifecycle.filter(([kind]) => kinds.includes(kind));
  for (const [, , group] of changes) call.requireGroup(group);
  return {
    withRecords: kinds.length === 0 || kinds.includes(UpdateKind.STATE_UPSERTED),
    withTombstones: kinds.length === 0 || kinds.includes(UpdateKind.STATE_DELETED),
    kinds: new Set(changes.map(([, kind]) => kind)),
    types,
    entityIds,
    ...(exceptOwn ? { exceptAgentId: call.agentId } : {}),
  };
}

/** Throws SYNC_CURSOR_AHEAD for a cursor that this server has not reached. */
export function checkCursor(since: Since, head: number): void {
  if (since.kind !== "cursor" || since.after <= head) return;
  throw new ServiceError(
    "SYNC_CURSOR_AHEAD",
    "This cursor is ahead of the server: it is another server's, or a backup was restored. " +
      "Pull from 0.",
    { details: { cursor: head } },
  );
}
