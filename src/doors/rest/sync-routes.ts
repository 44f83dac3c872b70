import { SyncService, UpdateKind } from "../../../gen/sealflow/v1/sync_pb.ts";
import type { Fields } from "./fields.ts";
import { ok, route, streamRoute } from "./route.ts";
import {
  changeView,
  pushResultView,
  pushWord,
  recordHeadView,
  recordView,
  time,
  updateView,
  updateWord,
} from "./views.ts";

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

  streamRoute("GET /sync/subscribe", rpc.subscribe, {
    ask: ({ query, lastEventId }) => {
      const since = query.whole64("since");
      return {
        since: lastEventId === undefined ? since : resumeFrom(query, lastEventId, since),
        kinds: readKinds(query),
        types: query.texts("types"),
        entityIds: query.texts("entityIds"),
        // Does not count from 0, and must not begin to when such a stream is gone on with.
        excludeOwn: query.flag("excludeOwn") === true && since !== 0n,
        heartbeat: query.duration("heartbeat"),
      };
    },
    // Each cursor is a place to go on from, that of READY too: nothing is missed, nothing repeated.
    tellEach: (update) => ({
      event: updateWord(update.kind),
      id: String(update.cursor),
      data: updateView(update),
    }),
  }),
];

/** After the position of an event. What is no position is noted. */
function resumeFrom(
  { problems }: Fields,
  lastEventId: string,
  since: bigint | undefined,
): bigint | undefined {
  const position = /^\d{1,16}$/.test(lastEventId) ? Number(lastEventId) : Number.NaN;
  if (!Number.isSafeInteger(position)) {
    problems.push({ field: "Last-Event-ID", message: "must be the id of an event" });
    return undefined;
  }
  // Nothing had changed yet. Only a stream of everything begins anew; another one goes on from the
  // first millisecond, so that its filter stays what it was.
  if (position === 0 && since !== 0n) return 1n;
  return BigInt(position);
}

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
