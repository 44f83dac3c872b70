import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { newOwner, type RestCaller } from "./callers.ts";
import { head, openRaw, type RawConnection } from "./raw-http.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// Clients that break HTTP, lie or leave. None may cost the others anything.

let server: TestServer;
let me: RestCaller;
beforeAll(async () => {
  server = await startTestServer();
  me = await newOwner(server);
});
afterEach(async () => {
  expect((await me.call("GET", "/workflows?limit=1")).status).toBe(200);
});
afterAll(async () => {
  expect(faultsOf(server)).toEqual([]);
  await server[Symbol.asyncDispose]();
});

const identity = () => ({
  authorization: `Bearer ${me.token}`,
  "x-agent-id": "laptop",
  "content-type": "application/json",
});
const post = (headers: Record<string, string | number>, path = "/api/v1/workflows") =>
  head(`POST ${path}`, { ...identity(), ...headers });

describe("a length that is a lie", () => {
  test("too short: what follows is no request", async () => {
    using raw = openRaw(server);
    raw.send(`${post({ "content-length": 5 })}{"name":"w"}`);
    const { status, body } = await raw.answer();
    expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
  });

  test.each(["-1", "x", "5, 6", "99999999999999999999999999"])("%s is 400", async (length) => {
    using raw = openRaw(server);
    raw.send(`${post({ "content-length": length })}{"name":"w"}`);
    const { status, body } = await raw.answer();
    expect([400, 413]).toContain(status);
    expect(body.success).toBe(false);
  });

  test("beside a transfer coding is 400", async () => {
    using raw = openRaw(server);
    raw.send(`${post({ "content-length": 5, "transfer-encoding": "chunked" })}0\r\n\r\n`);
    const { status, body } = await raw.answer();
    expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
  });

  test.each(["g\r\n", "-5\r\n", "5\r\n123"])("in a chunk: %j", async (text) => {
    using raw = openRaw(server);
    raw.send(`${post({ "transfer-encoding": "chunked" })}${text}`);
    raw.socket.end();
    await pause(50);
  });
});

describe("a client that leaves", () => {
  const leave = (how: (raw: RawConnection) => void) => async () => {
    using raw = openRaw(server);
    raw.send(`${post({ "content-length": 1000 })}{"name":`);
    await pause(30);
    how(raw);
    await pause(50);
  };
  test(
    "in the middle of a body",
    leave(({ socket }) => socket.destroy()),
  );
  test(
    "with a reset",
    leave(({ socket }) => socket.resetAndDestroy()),
  );
  test(
    "after half a close",
    leave(({ socket }) => socket.end()),
  );

  test("while it waits for a task leaves the task to others", async () => {
    const owner = await newOwner(server);
    await owner.ok("POST", "/agents/register", { id: "a" });
    using raw = openRaw(server);
    const body = '{"wait":20}';
    const headers = { ...identity(), authorization: `Bearer ${owner.token}`, "x-agent-id": "a" };
    raw.send(head("POST /api/v1/tasks/poll", { ...headers, "content-length": body.length }) + body);
    await pause(50);
    raw.socket.destroy();
    await pause(50);
    await owner.ok("POST", "/agents/a/execute", { wait: 0 });
    const { tasks } = await owner.as("a").ok("POST", "/tasks/poll", { wait: 5 });
    expect(tasks).toHaveLength(1);
  });
});

describe("requests that are none", () => {
  test.each([
    "GARBAGE\r\n\r\n",
    "GET\r\n\r\n",
    "GET /api/v1/workflows HTTP/9.9\r\n\r\n",
    "GET /api/v1/workflows HTTP/1.1\r\nbroken header\r\n\r\n",
    "GET /api/v1/workflows HTTP/1.1\r\n\r\n",
    "GET /api/v1/work flows HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /api/v1/workflows HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  ])("%j is 400 in the shape of the interface", async (text) => {
    using raw = openRaw(server);
    raw.send(Buffer.from(text, "latin1"));
    const { status, body } = await raw.answer();
    expect(status).toBe(400);
    expect(body).toEqual({
      success: false,
      error: { code: "VALIDATION_ERROR", message: expect.any(String), details: {} },
    });
  });

  test.each(["HTTP/1.0\r\n", "HTTP/1.1\r\nhost: ][\r\n", "HTTP/1.1\r\nhost: a b\r\n"])(
    "an rpc of no host is 400: %j",
    async (rest) => {
      using raw = openRaw(server);
      raw.send(`POST /sealflow.v1.SyncService/PullState ${rest}\r\n`);
      expect((await raw.answer()).status).toBe(400);
    },
  );

  test("headers without end are 400", async () => {
    using raw = openRaw(server);
    raw.send(head("GET /api/v1/workflows", { ...identity(), x: "x".repeat(64 * 1024) }));
    const { status, body } = await raw.answer();
    expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
  });

  test("slow headers keep nobody else waiting", async () => {
    using slow = openRaw(server);
    slow.send("GET /api/v1/workflows HTTP/1.1\r\nhost: localhost\r\nx: ");
    for (let i = 0; i < 5; i += 1) {
      slow.send("y");
      await pause(20);
    }
    expect((await me.call("GET", "/workflows?limit=1")).status).toBe(200);
    slow.send("\r\n\r\n");
    expect((await slow.answer()).status).toBe(401);
  });

  test.each(["CONNECT", "TRACE", "PROPFIND"])("the verb %s is not served", async (verb) => {
    using raw = openRaw(server);
    raw.send(head(`${verb} /api/v1/workflows`, identity()));
    const answer = await raw.answer().catch(() => undefined);
    expect(answer?.status ?? 405).toBe(405);
  });

  test("two in one packet are answered in their order", async () => {
    using raw = openRaw(server);
    const two = head("GET /api/v1/nothing", identity()) + head("GET /api/v1/agents", identity());
    raw.send(two);
    await raw.until(/404 Not Found[\s\S]*ROUTE_NOT_FOUND[\s\S]*200 OK[\s\S]*"agents":/);
  });

  test("a refused request leaves its connection usable", async () => {
    using raw = openRaw(server);
    const bad = '{"name":5}';
    raw.send(`${post({ "content-length": bad.length })}${bad}`);
    expect((await raw.answer()).status).toBe(400);
    raw.send(head("GET /api/v1/agents", identity()));
    await raw.until(/400 Bad Request[\s\S]*200 OK/);
  });
});
