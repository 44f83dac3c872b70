import type { FeedItem, PushOutcome, RecordDraft } from "../../src/domain/record.ts";
import type { Change, FeedPage, FeedQuery, Store } from "../../src/storage/port.ts";

/** A draft of version 1.0.0 of note/n1, with nothing special. */
export function recordDraft(changes: Partial<RecordDraft> = {}): RecordDraft {
  return {
    type: "note",
    entityId: "n1",
    encryptedData: "sealed",
    version: "1.0.0",
    deleted: false,
    mutationId: "",
    ...changes,
  };
}

/** Everything of alice's records, tombstones too, on one page. */
export function feedQuery(changes: Partial<FeedQuery> = {}): FeedQuery {
  return {
    after: 0,
    limit: 1_000,
    bytesMax: 1_000_000,
    withRecords: true,
    withTombstones: true,
    kinds: new Set(),
    types: [],
    entityIds: [],
    ...changes,
  };
}

/** Pushes drafts of alice's agent, each for itself. */
export async function pushEach(
  store: Store,
  ...drafts: readonly RecordDraft[]
): Promise<readonly PushOutcome[]> {
  const push = { agentId: "agent-1", drafts, mode: "each" } as const;
  return (await store.records.pushRecords("alice", push)).result;
}

/** Pushes one draft of alice's agent alone. */
export function pushSingle(
  store: Store,
  changes: Partial<RecordDraft> = {},
): Promise<Change<readonly PushOutcome[]>> {
  const drafts = [recordDraft(changes)];
  return store.records.pushRecords("alice", { agentId: "agent-1", drafts, mode: "single" });
}

/** Pushes drafts of alice's agent, all or none. */
export function pushAtomic(
  store: Store,
  ...drafts: readonly RecordDraft[]
): Promise<Change<readonly PushOutcome[]>> {
  return store.records.pushRecords("alice", { agentId: "agent-1", drafts, mode: "atomic" });
}

/** A page of alice's feed. */
export function readFeed(store: Store, changes: Partial<FeedQuery> = {}): Promise<FeedPage> {
  return store.records.readFeed("alice", feedQuery(changes));
}

/** All pages, one after the other, from the beginning. */
export async function readPages(
  store: Store,
  owner: string,
  filter: Partial<FeedQuery>,
): Promise<readonly FeedPage[]> {
  const pages: FeedPage[] = [];
  for (let after = 0, hasMore = true; hasMore; ) {
    const page = await store.records.readFeed(owner, feedQuery({ ...filter, after }));
    pages.push(page);
    after = page.cursor;
    hasMore = page.hasMore;
  }
  return pages;
}

/** What a page is about, in its order. */
export function namesOf({ items }: FeedPage): readonly string[] {
  return items.map(nameOf);
}

export function nameOf({ record, change }: FeedItem): string {
  return record === undefined ? `${change.kind}/${change.id}` : `${record.type}/${record.entityId}`;
}

/** In the order of the feed: note/n2, task/n2 (of agent-2), note/n1 updated, note/n3 deleted. */
export async function fillFeed(store: Store): Promise<void> {
  await pushEach(store, ...["n1", "n2", "n3"].map((entityId) => recordDraft({ entityId })));
  await store.records.pushRecords("alice", {
    agentId: "agent-2",
    drafts: [recordDraft({ type: "task", entityId: "n2" })],
    mode: "single",
  });
  await pushSingle(store, { version: "2" });
  await pushSingle(store, { entityId: "n3", version: "3", deleted: true });
}
