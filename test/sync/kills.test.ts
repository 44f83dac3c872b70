import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { Random } from "../chaos/random.ts";
import { type Body, type RestCaller, restCaller } from "../doors/callers.ts";
import { startKillableServer } from "../doors/killable-server.ts";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls until it is answered, whatever becomes of the server meanwhile. */
async function untilAnswered(call: () => Promise<Body>): Promise<Body> {
  for (;;) {
    try {
      return await call();
    } catch (cause) {
      // A refusal is an answer, unless it is that the server cannot now.
      if (
        cause instanceof Error &&
        /: [45]\d\d /.test(cause.message) &&
        !/: 503 /.test(cause.message)
      ) {
        throw cause;
      }
      await pause(50);
    }
  }
}

const singles = 5000;
const batches = 200;
const batchSize = 25;
const kills = 4;

test("kill -9 during ten thousand pushes: what was acknowledged is there, once, and no half of a batch", async () => {
  await using server = await startKillableServer();
  const me = restCaller(server, { token: await server.token({ sub: "me" }), agentId: "laptop" });
  const acknowledged = new Map<string, number>();
  const random = new Random(20_261_121);
  let isDone = false;

  async function push(body: object, names: readonly string[]) {
    const answer = await untilAnswered(() => me.ok("POST", "/sync/push", body));
    const records = answer.results?.map(({ record }: Body) => record) ?? [answer.record];
    for (const [i, name] of names.entries()) acknowledged.set(name, records[i].cursor);
  }
  const jobs = [
    ...Array.from({ length: singles }, (_, n) => () => push(draft(`s${n}`), [`s${n}`])),
    ...Array.from({ length: batches }, (_, n) => {
      const names = Array.from({ length: batchSize }, (_, i) => `b${n}-${i}`);
      return () => push({ records: names.map(draft), atomic: true }, names);
    }),
  ]
    .map((job) => ({ job, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ job }) => job);

  const writers = Array.from({ length: 16 }, async () => {
    for (let job = jobs.pop(); job !== undefined; job = jobs.pop()) await job();
  });
  const total = singles + batches * batchSize;
  const killing = (async () => {
    for (let kill = 1; kill <= kills; kill++) {
      while (acknowledged.size < (total * kill) / (kills + 1)) await pause(10);
      await server.kill();
      await server.start();
    }
  })();
  const following = follow(me, () => isDone);
  await Promise.all([...writers, killing]);
  isDone = true;

  const { seen, wrongs } = await following;
  expect(wrongs).toEqual([]);
  expect(seen.size).toBe(total);
  expect(acknowledged.size).toBe(total);
  for (const [name, cursor] of acknowledged) {
    expect(seen.get(name)).toEqual({ revision: 1, cursor });
  }
}, 240_000);

const drafts = new Map<string, object>();
/** The same mutation id at every try. */
function draft(entityId: string): object {
  const made = drafts.get(entityId) ?? {
    ...{ type: "note", entityId, version: "1", encryptedData: `data of ${entityId}` },
    mutationId: randomUUID(),
  };
  drafts.set(entityId, made);
  return made;
}

/** A device that keeps up: at each end of its pages, batches are whole. */
async function follow(me: RestCaller, isDone: () => boolean) {
  const seen = new Map<string, { revision: number; cursor: number }>();
  const wrongs: string[] = [];
  let since = 0;
  for (;;) {
    const isLast = isDone();
    const page = await untilAnswered(() => me.ok("GET", `/sync/pull?since=${since}&limit=300`));
    for (const { entityId, revision, cursor } of page.records) {
      if (seen.has(entityId)) wrongs.push(`${entityId} came twice`);
      if (cursor <= since) wrongs.push(`${entityId} lies before ${since}`);
      seen.set(entityId, { revision, cursor });
    }
    if (page.cursor < since) wrongs.push(`cursor ${page.cursor} after ${since}`);
    since = page.cursor;
    if (page.hasMore) continue;
    const halves = Map.groupBy(
      [...seen.keys()].filter((name) => name.startsWith("b")),
      (name) => name.split("-")[0],
    );
    for (const [batch, names] of halves) {
      if (names.length !== batchSize) wrongs.push(`${batch} is there in part: ${names.length}`);
    }
    if (isLast) return { seen, wrongs };
  }
}
