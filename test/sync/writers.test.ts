import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import { Random } from "../chaos/random.ts";
import { newOwner, type RestCaller, type RpcCaller, rpcCaller } from "../doors/callers.ts";
import { faultsOf, startTestServer, type TestServer } from "../doors/server.ts";
import { Follower, pullState, sorted } from "./follower.ts";

/** There is nothing more to tell now. */
const quiet: ReadonlySet<UpdateKind> = new Set([UpdateKind.UP_TO_DATE, UpdateKind.HEARTBEAT]);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  expect(faultsOf(server)).toEqual([]);
  await server[Symbol.asyncDispose]();
});

async function newDevice(): Promise<{ readonly me: RestCaller; readonly rpc: RpcCaller }> {
  const me = await newOwner(server);
  return { me, rpc: rpcCaller(server, me) };
}

/** Raises a shared entity by one, from whatever it is; how often it had to try. */
async function increment({ sync }: RpcCaller, entityId: string): Promise<number> {
  for (let tries = 1; ; tries++) {
    const { records } = await sync.pullState({ entityIds: [entityId] });
    const [known] = records;
    const count = Number.parseInt(known?.encryptedData ?? "0", 10) + 1;
    // What it says beside the count: the same bytes twice would be no conflict.
    const encryptedData = `${count} ${randomUUID()}`;
    const pushed = await sync.pushState({
      records: [
        {
          ...{ type: "counter", entityId, encryptedData, version: String(count) },
          expectedRevision: known?.revision ?? 0n,
        },
      ],
    });
    if (pushed.results[0]?.reason === 0) return tries;
  }
}

describe("a thousand writers at once", () => {
  const writers = 1000;
  const versions = 3;
  const cuts = 200;

  test("a subscriber that is cut 200 times, and pollers, miss nothing and hear nothing twice", async () => {
    const { me, rpc } = await newDevice();
    // Ten devices: one connection carries a thousand calls at most.
    const devices = Array.from({ length: 10 }, () => rpcCaller(server, me));
    const random = new Random(20_261_121);
    let isDone = false;
    const writing = Promise.all(
      Array.from({ length: writers }, async (_, n) => {
        for (let version = 1; version <= versions; version++) {
          const deleted = version === versions && n % 10 === 0;
          await devices[n % devices.length]?.sync.pushState({
            ...{ type: "note", entityId: `n${n}`, version: String(version), deleted },
            encryptedData: `data of ${n}`,
          });
        }
      }),
    ).finally(() => {
      isDone = true;
    });

    const subscriber = new Follower();
    const subscribing = (async () => {
      for (let cut = 0; cut < cuts; cut++) {
        let left = random.whole(1, 25);
        // Once all is written, what has come is all there is.
        await subscriber.read(rpc, ({ kind }) => --left === 0 || (isDone && quiet.has(kind)));
      }
    })();
    const polling = poll(rpc, () => isDone, { random });
    const byTime = poll(rpc, () => isDone, { random, isByTime: true });
    await Promise.all([writing, subscribing]);
    await subscriber.readToEnd(rpc);

    const all = await pullState(rpc);
    expect(all.size).toBe(writers);
    expect(new Set([...all.values()].map(({ revision }) => revision))).toEqual(new Set([versions]));
    expect(subscriber.wrongs).toEqual([]);
    expect(sorted(subscriber.state)).toEqual(sorted(all));
    expect(sorted(await polling)).toEqual(sorted(all));
    expect(sorted(await byTime)).toEqual(sorted(all));
  }, 120_000);

  /** Pulls in small pages until all is written; what it has in the end. */
  async function poll(
    { sync }: RpcCaller,
    isDone: () => boolean,
    { random, isByTime = false }: { readonly random: Random; readonly isByTime?: boolean },
  ) {
    const state = new Map<string, object>();
    let since = 0n;
    for (;;) {
      const isLast = isDone();
      const limit = isByTime ? 1000 : random.whole(1, 7) * (isLast ? 100 : 1);
      const page = await sync.pullState({ since, limit, includeDeleted: true });
      for (const { type, entityId, revision, version, deleted } of page.records) {
        state.set(`${type}/${entityId}`, { revision: Number(revision), version, deleted });
      }
      // The seed's own way: a clock of milliseconds, which is inclusive.
      const next = isByTime && page.cursor > 0n ? page.cursor / 1000n : page.cursor;
      if (isLast && !page.hasMore) return state;
      since = next;
    }
  }
});

test("64 devices that count together lose no count: revisions are dense, each accepted once", async () => {
  const { rpc } = await newDevice();
  const perDevice = 4;
  const entities = ["a", "b", "c", "d", "e"];
  await Promise.all(
    Array.from({ length: 64 }, async (_, n) => {
      for (let i = 0; i < perDevice; i++) {
        await increment(rpc, entities[(n + i) % entities.length] ?? "a");
      }
    }),
  );
  const { records } = await rpc.sync.pullState({});
  const counted = records.map(({ encryptedData, revision }) => [
    Number.parseInt(encryptedData, 10),
    revision,
  ]);
  for (const [count, revision] of counted) expect(BigInt(count as number)).toBe(revision);
  expect(counted.reduce((sum, [count]) => sum + Number(count), 0)).toBe(64 * perDevice);
}, 60_000);

test("two devices edit from the same base: one wins, the other merges and wins next", async () => {
  const { me } = await newDevice();
  const push = (device: RestCaller, data: string, version: string, expectedRevision: number) =>
    device.call("POST", "/sync/push", {
      body: { type: "note", entityId: "n", encryptedData: data, version, expectedRevision },
    });
  await push(me, "base", "1", 0);
  const [a, b] = [me.as("a"), me.as("b")];
  const answers = await Promise.all([push(a, "of a", "2", 1), push(b, "of b", "2", 1)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  const lost = answers.find(({ status }) => status === 409);
  const { current, reason } = lost?.body.error.details ?? {};
  expect(reason).toBe("REVISION_MISMATCH");
  expect(current).toMatchObject({ revision: 2, version: "2" });
  const merged = await push(a, `${current.encryptedData} and more`, "3", current.revision);
  expect(merged.status).toBe(200);
  const { records } = await me.ok("GET", "/sync/pull");
  expect(records).toMatchObject([
    { revision: 3, encryptedData: `${current.encryptedData} and more` },
  ]);
});

test("a heartbeat's cursor is past all that was dropped, and nothing later lies before it", async () => {
  const { me, rpc } = await newDevice();
  const cut = new AbortController();
  const cursors: bigint[] = [];
  const request = { since: 0n, types: ["none"], heartbeat: { seconds: 1n, nanos: 0 } };
  const reading = (async () => {
    for await (const { cursor, record } of rpc.sync.subscribe(request, { signal: cut.signal })) {
      expect(record).toBeUndefined();
      cursors.push(cursor);
      if (cursors.length === 5) return;
    }
  })();
  let last = 0;
  for (let n = 0; cursors.length < 4; n++) {
    const body = { type: "note", entityId: `n${n}`, encryptedData: "x", version: "1" };
    last = (await me.ok("POST", "/sync/push", body)).record.cursor;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await reading;
  cut.abort();
  expect(cursors.at(-1)).toBe(BigInt(last));
  expect(cursors).toEqual([...cursors].sort((a, b) => (a < b ? -1 : 1)));
});
