import { SyncService, UpdateKind } from "../../../gen/sealflow/v1/sync_pb.ts";
import type { Fields } from "./fields.ts";
import { ok, route } from "./route.ts";
import { changeView, pushResultView, pushWord, recordHeadView, recordView, time } from "./views.ts";

const rpc = SyncService.method;

const kinds: Readonly<Record<string, UpdateKind>> = {
  state_upserted: UpdateKind.STATE_UPSERTED,
  state_deleted: UpdateKind.STATE_DELETED,
  workflow: UpdateKind.WORKFLOW,
  execution: UpdateKind.EXECUTION,
  agent: UpdateKind.AGENT,
};

export const syncRoutes = [
  route("POST /sync/push", rpc.pushState, {
    ask: ({ body }) => ({
      ...recordFields(body),
      records: body.groups("records")?.map(recordFields),
      atomic: body.flag("atomic"),
    }),
    tell: ({ status, record, results, epoch }, { request }) =>
      request.records.length > 0
        ? ok({ results: results.map(pushResultView), epoch })
        : ok({ status: pushWord(status), record: record && recordHeadView(record), epoch }),
  }),

  route("GET /sync/pull", rpc.pullState, {
    ask: ({ query, preferredWait }) => ({
      since: query.whole64("since"),
      limit: query.whole("limit"),
      types: query.texts("types"),
      entityIds: query.texts("entityIds"),
      excludeOwn: query.flag("excludeOwn"),
      includeDeleted: query.flag("includeDeleted"),
      kinds: readKinds(query),
      wait: query.duration("wait") ?? preferredWait,
    }),
    tell: ({ records, changes, cursor, hasMore, serverTime, epoch }, { request }) =>
      ok({
        records: records.map(recordView),
        changes: request.kinds.some(isLifecycle) ? changes.map(changeView) : undefined,
        cursor: Number(cursor),
        hasMore,
        serverTime: time(serverTime),
        epoch,
      }),
  }),
];

function recordFields(body: Fields) {
  return {
    type: body.text("type"),
    entityId: body.text("entityId"),
    encryptedData: body.text("encryptedData"),
    version: body.text("version"),
    deleted: body.flag("deleted"),
    mutationId: body.text("mutationId"),
    expectedRevision: body.whole64("expectedRevision"),
  };
}

/** The kinds a query names; a word that is none is noted. */
function readKinds(query: Fields): UpdateKind[] | undefined {
  return query.texts("kinds")?.flatMap((word) => {
    const kind = Object.hasOwn(kinds, word) ? kinds[word] : undefined;
    if (kind !== undefined) return kind;
    const known = Object.keys(kinds).join(", ");
    query.problems.push({ field: "kinds", message: `must be some of ${known}` });
    return [];
  });
}

function isLifecycle(kind: UpdateKind): boolean {
  return kind !== UpdateKind.STATE_UPSERTED && kind !== UpdateKind.STATE_DELETED;
}
