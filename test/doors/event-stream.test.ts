import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defaultRateLimits } from "../../src/calls/rate-limits.ts";
import { expectRefused, newOwner, restCall, restCaller } from "./callers.ts";
import { openEvents } from "./event-streams.ts";
import { head, openRaw } from "./raw-http.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";
import { newDevice } from "./streams.ts";

// A stream in REST's own form: server-sent events.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  expect(faultsOf(server)).toEqual([]);
  await server[Symbol.asyncDispose]();
});

const path = "/sync/subscribe";
/** A request for a stream on a bare connection. */
const ask = (token: string, more: Record<string, string | number> = {}) =>
  head(`GET /api/v1${path}`, {
    ...{ authorization: `Bearer ${token}`, "x-agent-id": "laptop", ...more },
  });

describe("an event stream", () => {
  test("has the headers of one, and those of every answer", async () => {
    await using limited = await startTestServer({ rateLimits: defaultRateLimits });
    await using stream = await openEvents(limited, await newOwner(limited));
    const { status, headers } = stream.response;
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-accel-buffering")).toBe("no");
    expect(headers.get("content-length")).toBeNull();
    expect(headers.get("x-ratelimit-limit")).toBe("100");
    expect(headers.get("x-ratelimit-remaining")).toBe("99");
  });

  test("says each event in an order that a cut does not spoil: kind, data, id", async () => {
    const { me, push } = await newDevice(server);
    const encryptedData = "é\ndata: x\r\n\nid: 7";
    const { record, epoch } = await push("a\u2028b\n", { encryptedData });
    const { cursor, createdAt, updatedAt, revision } = record;
    const shown = JSON.stringify({
      ...{ type: "note", entityId: "a\u2028b\n", encryptedData, version: "1", deleted: false },
      ...{ revision, cursor, agentId: "laptop", createdAt, updatedAt },
    });
    await using stream = await openEvents(server, me, "?since=0");
    await stream.words(3);
    expect(stream.text()).toBe(
      `event: ready\ndata: {"kind":"ready","cursor":0,"prevCursor":0,"epoch":"${epoch}"}\n` +
        `id: 0\n\n` +
        `event: state_upserted\ndata: {"kind":"state_upserted","record":${shown},` +
        `"cursor":${cursor},"prevCursor":0}\nid: ${cursor}\n\n` +
        `event: up_to_date\ndata: {"kind":"up_to_date","cursor":${cursor},` +
        `"prevCursor":${cursor}}\nid: ${cursor}\n\n`,
    );
  });

  test("shows records and changes as a pull does", async () => {
    const { me, push } = await newDevice(server);
    await push("a");
    await push("a", { version: "2", deleted: true, encryptedData: "proof" });
    await push("b");
    const { id } = await me.ok("POST", "/workflows", { name: "w" });
    await me.ok("POST", `/workflows/${id}/execute`, { wait: 0 });
    await me.ok("POST", "/agents/register", { id: "x" });
    await me.ok("DELETE", "/agents/x");
    const query = "?since=1&kinds=state_upserted,state_deleted,workflow,execution,agent";
    const { records, changes } = await me.ok("GET", `/sync/pull${query}`);
    expect([records.length, changes.length]).toEqual([2, 3]);
    await using stream = await openEvents(server, me, query);
    expect((await stream.next())?.event).toBe("ready");
    const seen = [];
    for (let i = 0; i < 5; i += 1) seen.push((await stream.next())?.json);
    expect((await stream.next())?.event).toBe("up_to_date");
    expect(seen.flatMap(({ record }) => record ?? [])).toEqual(records);
    expect(seen.flatMap(({ change }) => change ?? [])).toEqual(changes);
  });

  test("comes at once, whatever a client accepts, and beside a body that it never sends", async () => {
    const me = await newOwner(server);
    using raw = openRaw(server);
    raw.send(ask(me.token, { accept: "application/json", "content-length": 5 }));
    await raw.until(/text\/event-stream[\s\S]*event: ready[\s\S]*event: up_to_date/);
  });

  test("leaves its connection to the next call", async () => {
    const token = await server.token({ sub: "brief", ttlSeconds: 2 });
    using raw = openRaw(server);
    raw.send(ask(token));
    const ended = /event: going_away\ndata: .*"reason":"token_expired"\}\nid: \d+\n\n\r\n0\r\n\r\n/;
    await raw.until(ended);
    raw.send(ask(await server.token({ sub: "brief" })));
    await raw.until(new RegExp(`${ended.source}HTTP/1.1 200 OK[\\s\\S]*event: ready`));
  });

  test("is asked for by HEAD without opening one", async () => {
    const me = await newOwner(server);
    for (let i = 0; i < 201; i += 1) {
      const { status, headers, text } = await me.call("HEAD", path);
      expect([status, headers.get("content-type"), text]).toEqual([
        ...[200, "text/event-stream; charset=utf-8", ""],
      ]);
    }
    const refused = await me.call("HEAD", `${path}?heartbeat=0`);
    expect([refused.status, refused.text]).toEqual([400, ""]);
  });
});

describe("before the first event a failure is an ordinary answer", () => {
  test("to who is nobody, and who may not", async () => {
    expectRefused(await restCall(server, `GET ${path}`), 401, "UNAUTHORIZED");
    const token = await server.token({ sub: "scoped", scope: "sealflow:workflows" });
    const scoped = restCaller(server, { token, agentId: "a" });
    expectRefused(await scoped.call("GET", path), 403, "FORBIDDEN");
    const sync = await server.token({ sub: "scoped", scope: "sealflow:sync" });
    const device = restCaller(server, { token: sync, agentId: "a" });
    expectRefused(await device.call("GET", `${path}?kinds=workflow`), 403, "FORBIDDEN");
  });

  test("to another method", async () => {
    const answer = await (await newOwner(server)).call("POST", path);
    expectRefused(answer, 405, "METHOD_NOT_ALLOWED");
    expect(answer.headers.get("allow")).toBe("GET");
  });

  test("for an id that is none, and one that is ahead", async () => {
    const { me, push } = await newDevice(server);
    const { record } = await push("a");
    for (const id of ["x", "-1", "1.5", "9007199254740992", "1, 2", `${record.cursor}x`]) {
      const answer = await me.call("GET", path, { headers: { "last-event-id": id } });
      expectRefused(answer, 400, "VALIDATION_ERROR");
      expect(answer.body.error.details.fields).toMatchObject([{ field: "Last-Event-ID" }]);
    }
    const headers = { "last-event-id": String(record.cursor + 1) };
    const ahead = await me.call("GET", `${path}?since=0`, { headers });
    expectRefused(ahead, 409, "SYNC_CURSOR_AHEAD");
    expect(ahead.body.error.details).toEqual({ cursor: record.cursor });
  });

  test("beyond the calls of a minute", async () => {
    await using limited = await startTestServer({ rateLimits: { ...defaultRateLimits, sync: 1 } });
    const me = await newOwner(limited);
    await using stream = await openEvents(limited, me);
    expect(stream.response.status).toBe(200);
    const answer = await me.call("GET", path);
    expectRefused(answer, 429, "RATE_LIMITED");
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(answer.headers.get("x-ratelimit-remaining")).toBe("0");
  });

  test("beyond 200 streams, until one of their readers leaves", async () => {
    const me = await newOwner(server);
    const streams = await Promise.all(Array.from({ length: 200 }, () => openEvents(server, me)));
    const answer = await me.call("GET", path);
    expectRefused(answer, 429, "RATE_LIMITED");
    expect(answer.body.error.details).toEqual({ limit: "streams" });
    await streams[7]?.[Symbol.asyncDispose]();
    const isOpen = async () => {
      await using stream = await openEvents(server, me);
      return stream.response.ok;
    };
    await expect.poll(isOpen, { timeout: 10_000 }).toBe(true);
    await Promise.all(streams.map((stream) => stream[Symbol.asyncDispose]()));
  });
});

test("after the first event a failure is the last event", async () => {
  await using broken = await startTestServer();
  const me = await newOwner(broken);
  await using stream = await openEvents(broken, me);
  expect(await stream.words(2)).toEqual(["ready", "up_to_date"]);
  const beside = new Database(join(broken.dataDir, "sealflow.db"));
  beside.exec("ALTER TABLE sync_entity RENAME TO gone");
  beside.close();
  // News, so that it looks.
  await me.ok("POST", "/workflows", { name: "w" });
  const rest = await stream.rest();
  const last = rest.at(-1);
  expect(rest.filter(({ event }) => event === "error")).toEqual([last]);
  expect(last?.json.success).toBe(false);
  expect(last?.json.error.code).toBe("INTERNAL_ERROR");
  expect(Object.keys(last?.json.error)).toEqual(["code", "message", "details"]);
  expect(last?.data).not.toContain("sync_entity");
  // It has no id of its own: who goes on does so from the event before.
  expect(last?.lastEventId).toBe("0");
});
