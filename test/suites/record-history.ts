import fc from "fast-check";
import { expect, test } from "vitest";
import { cursorOf, type FeedItem, type SyncRecord } from "../../src/domain/record.ts";
import type { FeedQuery, Store } from "../../src/storage/port.ts";
import { minute, type OpenedStore } from "./open-store.ts";
import { feedQuery, nameOf, readPages } from "./record-drafts.ts";
import { type HistoryPush, RecordModel } from "./record-model.ts";
import { errorOf } from "./refusal.ts";

type Step =
  | { readonly kind: "push"; readonly push: HistoryPush }
  | { readonly kind: "clock"; readonly us: number }
  | { readonly kind: "read"; readonly limit: number };

const draft = fc.record({
  type: fc.constantFrom("note", "task"),
  entityId: fc.constantFrom("n1", "n2", "n3"),
  encryptedData: fc.constantFrom("one", "two", "three"),
  version: fc.integer({ min: 1, max: 9 }).map(String),
  deleted: fc.boolean(),
  mutationId: fc.constant(""),
});

const push = fc.record({
  agentId: fc.constantFrom("agent-1", "agent-2"),
  mode: fc.constantFrom("single", "each", "atomic"),
  drafts: fc.uniqueArray(draft, {
    minLength: 1,
    maxLength: 5,
    selector: ({ type, entityId }) => `${type}/${entityId}`,
  }),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: push.map((it): Step => ({ kind: "push", push: it })) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(1, minute, -minute).map((us): Step => ({ kind: "clock", us })),
  },
  {
    weight: 2,
    arbitrary: fc.integer({ min: 1, max: 3 }).map((limit): Step => ({ kind: "read", limit })),
  },
);

const filters: readonly Partial<FeedQuery>[] = [
  { withTombstones: false },
  { withRecords: false },
  { types: ["task"] },
  { entityIds: ["n1", "n3"] },
  { entityIds: ["n1", "n3"], types: ["note"] },
  { exceptAgentId: "agent-1" },
];

const settings = { seed: 20_261_121, numRuns: 60 };

/** One store for all histories, an owner for each: another owner's changes never show. */
export function historySuite(open: () => Promise<OpenedStore>): void {
  test("reads the same state in any split of pages, and filters only narrow", async () => {
    await using opened = await open();
    let histories = 0;
    const history = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), (steps) => {
      histories += 1;
      return runHistory(opened, `owner-${histories}`, steps);
    });
    await fc.assert(history, settings);
    expect(histories).toBeGreaterThanOrEqual(settings.numRuns);
  });
}

/** A reader follows while it happens; others come when all is over. */
async function runHistory(
  { store, clock }: OpenedStore,
  owner: string,
  steps: readonly Step[],
): Promise<void> {
  const model = new RecordModel();
  const follower = new Follower(store, owner);
  for (const it of steps) {
    if (it.kind === "push") await pushBoth(store, owner, { model, push: it.push });
    else if (it.kind === "clock") clock.stepWall(it.us);
    else await follower.read(it.limit);
  }
  while (await follower.read(2)) {
    // Until nothing is left.
  }
  expect(follower.state()).toStrictEqual(model.state());

  const whole = await readAll(store, owner, { limit: 1_000 });
  expect(stateOf(whole)).toStrictEqual(model.state());
  for (const limit of [1, 2, 3, 5]) {
    expect(await readAll(store, owner, { limit })).toStrictEqual(whole);
  }
  for (const filter of filters) {
    const narrowed = whole.filter((item) => passes(item, filter));
    expect(await readAll(store, owner, { ...filter, limit: 2 })).toStrictEqual(narrowed);
  }
}

/** The store decides as the model does. */
async function pushBoth(
  store: Store,
  owner: string,
  { model, push: given }: { readonly model: RecordModel; readonly push: HistoryPush },
): Promise<void> {
  const drafts = given.mode === "single" ? given.drafts.slice(0, 1) : given.drafts;
  const pushing = store.records.pushRecords(owner, { ...given, drafts });
  const expected = model.push({ ...given, drafts });
  if (expected === "refused") {
    expect((await errorOf(pushing)).reason).toBe("SYNC_CONFLICT");
    return;
  }
  const outcomes = (await pushing).result;
  expect(outcomes.map((it) => (it.status === "conflict" ? it.reason : it.status))).toStrictEqual(
    expected,
  );
}

/** Goes on from its cursor, as a device does. */
class Follower {
  readonly #store: Store;
  readonly #owner: string;
  readonly #items = new Map<string, FeedItem>();
  #cursor = 0;

  constructor(store: Store, owner: string) {
    this.#store = store;
    this.#owner = owner;
  }

  /** Whether there is more. */
  async read(limit: number): Promise<boolean> {
    const query = feedQuery({ after: this.#cursor, limit });
    const page = await this.#store.records.readFeed(this.#owner, query);
    expectAscent(page.items, this.#cursor);
    expect(page.cursor).toBeGreaterThanOrEqual(Math.max(this.#cursor, ...page.items.map(cursorOf)));
    expect(page.cursor).toBeLessThanOrEqual(page.head);
    if (!page.hasMore) expect(page.cursor).toBe(page.head);
    for (const item of page.items) this.#items.set(nameOf(item), item);
    this.#cursor = page.cursor;
    return page.hasMore;
  }

  state(): ReturnType<RecordModel["state"]> {
    return stateOf([...this.#items.values()]);
  }
}

/** One uninterrupted read: no thing comes twice. */
async function readAll(
  store: Store,
  owner: string,
  filter: Partial<FeedQuery>,
): Promise<readonly FeedItem[]> {
  const items = (await readPages(store, owner, filter)).flatMap((page) => page.items);
  expectAscent(items, 0);
  expect(new Set(items.map(nameOf)).size).toBe(items.length);
  return items;
}

function expectAscent(items: readonly FeedItem[], after: number): void {
  let last = after;
  for (const item of items) {
    expect(cursorOf(item)).toBeGreaterThan(last);
    last = cursorOf(item);
  }
}

function passes({ record }: FeedItem, filter: Partial<FeedQuery>): boolean {
  if (record === undefined) return false;
  const { withRecords = true, withTombstones = true, types = [], entityIds = [] } = filter;
  return (
    (record.deleted ? withTombstones : withRecords) &&
    (types.length === 0 || types.includes(record.type)) &&
    (entityIds.length === 0 || entityIds.includes(record.entityId)) &&
    record.agentId !== filter.exceptAgentId
  );
}

function stateOf(items: readonly FeedItem[]): ReturnType<RecordModel["state"]> {
  const records = items.flatMap(({ record }): SyncRecord[] =>
    record === undefined ? [] : [record],
  );
  return new Map(
    records
      .map(({ type, entityId, version, deleted, encryptedData, revision, agentId }) => {
        const state = { version, deleted, encryptedData, revision, agentId };
        return [`${type}/${entityId}`, state] as const;
      })
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
