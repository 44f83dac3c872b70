import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { agentHeaders, type Body, newOwner, type RestCaller } from "./callers.ts";
import { EventParser } from "./event-parser.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// Event streams that are cut, and gone on with by Last-Event-ID.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  expect(faultsOf(server)).toEqual([]);
  await server[Symbol.asyncDispose]();
});

const cuts = 50;
/** Some ten events: a stream is cut after less. */
const bytesMax = 4000;

/** A device that goes on where it was cut off, as the standard tells a browser to. */
interface Device {
  readonly me: RestCaller;
  readonly query: string;
  lastEventId: string;
  /** The data of all that it was told, over all its streams. */
  readonly told: Body[];
}

/** Reads one stream until it has enough, or for so many bytes: mostly into the midst of an event. */
async function readOn(
  device: Device,
  { bytes = Infinity, isEnough = () => false }: { bytes?: number; isEnough?: () => boolean },
): Promise<void> {
  const { me, query, lastEventId, told } = device;
  const response = await fetch(`${server.httpUrl}/api/v1/sync/subscribe${query}`, {
    headers: {
      ...agentHeaders(me.token, me.agentId),
      ...(lastEventId === "" ? {} : { "last-event-id": lastEventId }),
    },
  });
  expect(response.status).toBe(200);
  const parser = new EventParser();
  let left = bytes;
  for await (const chunk of response.body ?? []) {
    for (const event of parser.feed(chunk.subarray(0, left))) {
      told.push(JSON.parse(event.data));
      device.lastEventId = event.lastEventId;
    }
    left -= chunk.length;
    if (left <= 0 || isEnough()) return;
  }
}

interface Pushed {
  readonly agentId: string;
  readonly type: string;
  readonly entityId: string;
  readonly cursor: number;
}

/** Three agents that push: mostly things of their own, and one thing again and again. */
function startWriters(me: RestCaller): { stop(): Promise<Pushed[]> } {
  const pushed: Pushed[] = [];
  let isOver = false;
  const write = async (agentId: string) => {
    for (let i = 1; !isOver; i += 1) {
      const type = i % 2 === 0 ? "note" : "todo";
      const entityId = i % 3 === 0 ? "again" : `${agentId} ${i}`;
      const draft = { type: entityId === "again" ? agentId : type, entityId, version: `${i}` };
      const body = { ...draft, encryptedData: "x".repeat((i * 37) % 200) || "-" };
      const { record } = await me.as(agentId).ok("POST", "/sync/push", body);
      pushed.push({ agentId, ...draft, cursor: record.cursor });
      await pause(2);
    }
  };
  const writers = ["laptop", "phone", "tablet"].map(write);
  return {
    async stop() {
      isOver = true;
      await Promise.all(writers);
      return pushed.sort((a, b) => a.cursor - b.cursor);
    },
  };
}

const everything = () => true;
const othersNotes = ({ agentId, type }: Pushed) => agentId !== "laptop" && type === "note";

test.each([
  { query: "", isWanted: everything },
  { query: "?since=0", isWanted: everything },
  { query: "?since=0&excludeOwn=true", isWanted: everything },
  { query: "?excludeOwn=true&types=note", isWanted: othersNotes },
])(
  `subscribe$query, cut ${cuts} times, misses nothing and repeats nothing`,
  async (form) => {
    const { query, isWanted } = form;
    const me = await newOwner(server, "laptop");
    const device: Device = { me, query, lastEventId: "", told: [] };
    // Before anything has changed: what is from now on, is all.
    await readOn(device, { isEnough: () => device.told.length > 0 });
    const writers = startWriters(me);
    const random = randomFrom(20_261_121);
    for (let i = 0; i < cuts; i += 1) {
      const before = device.lastEventId;
      const from = device.told.length;
      await readOn(device, { bytes: Math.floor(random() * bytesMax) });
      expectChained(device.told.slice(from), before);
    }
    const pushed = await writers.stop();
    const { cursor: head } = await me.ok("GET", "/sync/pull");
    await readOn(device, { isEnough: () => Number(device.lastEventId) >= head });

    const records: Pushed[] = device.told.flatMap(({ record }) => record ?? []);
    const once = (all: Pushed[]) =>
      all.filter(({ entityId }) => entityId !== "again").map(({ entityId }) => entityId);
    expect(once(records).length).toBeGreaterThan(cuts);
    expect(once(records)).toEqual(once(pushed.filter(isWanted)));
    expectAscending(records.map(({ cursor }) => cursor));
    const newest = (all: Pushed[]) =>
      new Map(all.map(({ type, entityId, cursor }) => [`${type}/${entityId}`, cursor]));
    expect(newest(records)).toEqual(newest(pushed.filter(isWanted)));
  },
  120_000,
);

/** A stream goes on at the id of the last event before, and each event at the one before it. */
function expectChained(told: readonly Body[], lastEventId: string): void {
  const [first, ...rest] = told;
  if (first === undefined) return;
  expect([first.kind, first.cursor]).toEqual(["ready", Number(lastEventId)]);
  for (const [i, { prevCursor }] of rest.entries()) expect(prevCursor).toBe(told[i]?.cursor);
}

function expectAscending(cursors: readonly number[]): void {
  for (const [i, cursor] of cursors.entries()) {
    if (i > 0) expect(cursor).toBeGreaterThan(cursors[i - 1] ?? Infinity);
  }
}

/** Chance that can be had again (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
