import { randomUUID } from "node:crypto";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import { issueToken } from "../../src/calls/auth/issuer.ts";
import { loadSigningKeys } from "../../src/calls/auth/signing-keys.ts";
import { startServer } from "../../src/server.ts";
import { type RpcCaller, rpcCaller } from "../doors/callers.ts";
import { testConfig, testWorld } from "../doors/server.ts";
import { makeFolder } from "../suites/open-store.ts";
import { type HistoryPush, RecordModel } from "../suites/record-model.ts";
import { Follower, pullState, sorted, type Told } from "./follower.ts";

type Step =
  | { readonly kind: "push"; readonly push: HistoryPush }
  | { readonly kind: "again" }
  | { readonly kind: "clock"; readonly ms: number }
  /** A device reads so many updates, and is cut. */
  | { readonly kind: "follow"; readonly updates: number }
  /** Another pulls one page. */
  | { readonly kind: "pull"; readonly limit: number };

const hourMs = 3_600_000;
const settings = { seed: 20_261_121, numRuns: 40 };

const draft = fc.record({
  type: fc.constantFrom("note", "task"),
  entityId: fc.constantFrom("n1", "n2", "n3"),
  encryptedData: fc.constantFrom("one", "two"),
  version: fc.integer({ min: 1, max: 9 }).map(String),
  deleted: fc.boolean(),
  mutationId: fc.constant(""),
});

const push = fc.record({
  agentId: fc.constant("laptop"),
  mode: fc.constantFrom("each", "atomic"),
  drafts: fc.uniqueArray(draft, {
    minLength: 1,
    maxLength: 4,
    selector: ({ type, entityId }) => `${type}/${entityId}`,
  }),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: push.map((it): Step => ({ kind: "push", push: it })) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: "again" }) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(-hourMs, -1, 1, 24 * hourMs)
      .map((ms): Step => ({ kind: "clock", ms })),
  },
  {
    weight: 3,
    arbitrary: fc.integer({ min: 1, max: 5 }).map((updates): Step => ({ kind: "follow", updates })),
  },
  {
    weight: 2,
    arbitrary: fc.integer({ min: 1, max: 4 }).map((limit): Step => ({ kind: "pull", limit })),
  },
);

test("in any history, a pull, a stream and any split of either come to the same state", async () => {
  await using folder = await makeFolder();
  let stepMs = 0;
  const world = testWorld([]);
  const clock = { ...world.clock, wallUs: () => world.clock.wallUs() + stepMs * 1000 };
  await using server = await startServer(testConfig(folder.path), { ...world, clock });
  const address = { httpUrl: server.httpUrl, grpcUrl: `http://${server.grpcAddress}` };
  const { active } = await loadSigningKeys(join(folder.path));

  const history = fc.asyncProperty(
    fc.array(step, { minLength: 1, maxLength: 20 }),
    async (steps) => {
      stepMs = 0;
      const draftToken = {
        sub: randomUUID(),
        ttlSeconds: 30 * 24 * 3600,
        nowMs: Date.now() - 48 * hourMs,
      };
      const { token } = await issueToken(active, draftToken);
      const rpc = rpcCaller(address, { token, agentId: "laptop" });
      await playHistory(rpc, steps, (ms) => {
        stepMs += ms;
      });
    },
  );
  await fc.assert(history, settings);
}, 120_000);

async function playHistory(
  rpc: RpcCaller,
  steps: readonly Step[],
  stepClock: (ms: number) => void,
): Promise<void> {
  const model = new RecordModel();
  const follower = new Follower();
  const pages = new Map<string, number>();
  let since = 0n;
  let last: HistoryPush | undefined;
  const pull = async (limit: number) => {
    const page = await rpc.sync.pullState({ since, limit, includeDeleted: true });
    for (const { type, entityId, revision } of page.records) {
      pages.set(`${type}/${entityId}`, Number(revision));
    }
    since = page.cursor;
    return page.hasMore;
  };
  for (const it of steps) {
    if (it.kind === "push") last = it.push;
    if ((it.kind === "push" || it.kind === "again") && last !== undefined) {
      await pushBoth(rpc, model, last);
    } else if (it.kind === "clock") stepClock(it.ms);
    else if (it.kind === "follow") {
      let left = it.updates;
      await follower.read(rpc, ({ kind }) => --left === 0 || kind === upToDate);
    } else if (it.kind === "pull") await pull(it.limit);
  }

  const expected = [...model.state()].map(([name, told]): [string, Told] => {
    const { revision, version, deleted } = told;
    return [name, { revision, version, deleted }];
  });
  await follower.readToEnd(rpc);
  while (await pull(2)) {
    // Until nothing is left.
  }
  const snapshot = new Follower();
  await snapshot.readToEnd(rpc);
  expect([...follower.wrongs, ...snapshot.wrongs]).toEqual([]);
  // A snapshot leaves deletions out, and a stream that was cut in it begins with another.
  expect(live(sorted(follower.state))).toEqual(live(expected));
  expect(sorted(snapshot.state)).toEqual(live(expected));
  for (const limit of [1, 3, 1000]) expect(sorted(await pullState(rpc, limit))).toEqual(expected);
  expect(sorted(pages)).toEqual(expected.map(([name, { revision }]) => [name, revision]));
  await expectFiltered(rpc, model);
}

function live(state: readonly [string, Told][]): [string, Told][] {
  return state.filter(([, { deleted }]) => !deleted);
}

/** A filter gives exactly its part. */
async function expectFiltered({ sync }: RpcCaller, model: RecordModel): Promise<void> {
  const filters = [{ types: ["task"] }, { entityIds: ["n1", "n3"] }, { types: ["none"] }];
  for (const filter of filters) {
    const { records, cursor } = await sync.pullState({ ...filter, includeDeleted: true });
    const names = records.map(({ type, entityId }) => `${type}/${entityId}`).sort();
    const wanted = [...model.state().keys()].filter((name) => {
      const [type = "", id = ""] = name.split("/");
      return (filter.types ?? [type]).includes(type) && (filter.entityIds ?? [id]).includes(id);
    });
    expect(names).toEqual(wanted);
    expect(cursor).toBe((await sync.pullState({ limit: 1000 })).cursor);
  }
}

const upToDate = UpdateKind.UP_TO_DATE;

/** The server decides as the model does. */
async function pushBoth(
  { sync }: RpcCaller,
  model: RecordModel,
  given: HistoryPush,
): Promise<void> {
  const expected = model.push(given);
  const records = given.drafts.map(({ type, entityId, encryptedData, version, deleted }) => ({
    ...{ type, entityId, encryptedData, version, deleted },
  }));
  const pushing = sync.pushState({ records, atomic: given.mode === "atomic" });
  if (expected === "refused") {
    await expect(pushing).rejects.toThrow(/SYNC_CONFLICT|version/i);
    return;
  }
  const { results } = await pushing;
  expect(results.map(({ status, reason }) => wordOf(status, reason))).toEqual(expected);
}

const statusWords = ["", "created", "updated", "deleted", "unchanged", "conflict"];
const reasonWords = ["", "STALE_VERSION", "SAME_VERSION", "REVISION_MISMATCH", "MUTATION_REUSED"];

function wordOf(status: number, reason: number): string {
  const word = statusWords[status] ?? "";
  return word === "conflict" ? (reasonWords[reason] ?? "") : word;
}
