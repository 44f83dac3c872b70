import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newOwner, type RestCaller } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

// Statuses and headers of REST; its shapes are in rest-shapes.test.ts.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

async function newWorkflow(me: RestCaller): Promise<string> {
  return (await me.ok("POST", "/workflows", { name: "w" })).id;
}

describe("what was made", () => {
  test("a workflow is 201 with its place, and 200 when the request is repeated", async () => {
    const me = await newOwner(server);
    const options = { body: { name: "w" }, headers: { "idempotency-key": "k1" } };
    const first = await me.call("POST", "/workflows", options);
    expect(first.status).toBe(201);
    expect(first.headers.get("location")).toBe(`/api/v1/workflows/${first.body.id}`);
    expect(first.headers.get("content-type")).toMatch(/^application\/json/);
    const again = await me.call("POST", "/workflows", options);
    expect([again.status, again.body]).toEqual([200, first.body]);
    const other = await me.call("POST", "/workflows", { ...options, body: { name: "other" } });
    expect([other.status, other.body.error.code]).toEqual([409, "IDEMPOTENCY_CONFLICT"]);
    expect((await me.call("GET", `/workflows/${first.body.id}`)).body).toEqual(first.body);
  });

  test("an agent is 201 the first time, then 200", async () => {
    const me = await newOwner(server);
    const register = () => me.call("POST", "/agents/register", { body: { id: "a:1" } });
    const first = await register();
    expect([first.status, first.headers.get("location")]).toEqual([201, "/api/v1/agents/a:1"]);
    expect((await register()).status).toBe(200);
  });

  test("a deletion is 204 without a body, and 404 the second time", async () => {
    const me = await newOwner(server);
    const path = `/workflows/${await newWorkflow(me)}`;
    const gone = await me.call("DELETE", path);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    await me.refused("WORKFLOW_NOT_FOUND", "DELETE", path);
    await me.ok("POST", "/agents/register", { id: "a" });
    expect((await me.call("DELETE", "/agents/a")).status).toBe(204);
    await me.refused("AGENT_NOT_FOUND", "DELETE", "/agents/a");
  });

  test("a change is 200", async () => {
    const me = await newOwner(server);
    const id = await newWorkflow(me);
    const changed = await me.call("PATCH", `/workflows/${id}`, { body: { name: "n" } });
    expect([changed.status, changed.body.name]).toEqual([200, "n"]);
  });
});

describe("an execution", () => {
  test("that nobody can take is answered at once: 202, its place, a hint", async () => {
    const me = await newOwner(server);
    const id = await newWorkflow(me);
    const beganMs = performance.now();
    const answer = await me.call("POST", `/workflows/${id}/execute`);
    expect(performance.now() - beganMs).toBeLessThan(5000);
    expect(answer.status).toBe(202);
    expect(answer.headers.get("location")).toBe(`/api/v1/executions/${answer.body.executionId}`);
    expect(answer.body).toMatchObject({ status: "pending", attempt: 0 });
    expect(answer.body.hint).toContain("No agent is listening");
    const { text } = await me.call("GET", `/executions/${answer.body.executionId}`);
    expect(JSON.parse(text)).toMatchObject({ status: "pending", hint: answer.body.hint });
  });

  test("that has ended is 200, and replayed with the same key", async () => {
    const me = await newOwner(server);
    const id = await newWorkflow(me);
    await me.ok("POST", "/agents/register", { id: "a" });
    const options = { body: { wait: 20 }, headers: { "idempotency-key": "k1" } };
    const waiting = me.call("POST", `/workflows/${id}/execute`, options);
    await completeNext(me);
    const done = await waiting;
    expect([done.status, done.body.status]).toEqual([200, "completed"]);
    expect(done.headers.get("location")).toBeNull();
    const again = await me.call("POST", `/workflows/${id}/execute`, options);
    expect([again.status, again.body.replayed]).toEqual([200, true]);
    expect(again.body.executionId).toBe(done.body.executionId);
  });

  test("waits as long as Prefer says, and not at all for respond-async", async () => {
    const me = await newOwner(server);
    const id = await newWorkflow(me);
    const timed = async (prefer: string, body?: object) => {
      const beganMs = performance.now();
      const answer = await me.call("POST", `/workflows/${id}/execute`, {
        ...(body === undefined ? {} : { body }),
        headers: { prefer },
      });
      expect(answer.status).toBe(202);
      return performance.now() - beganMs;
    };
    expect(await timed("wait=1")).toBeGreaterThan(900);
    // Together they mean: answer once the wait is over (RFC 7240 section 4.3).
    expect(await timed("respond-async, wait=1")).toBeGreaterThan(900);
    expect(await timed("respond-async")).toBeLessThan(5000);
    // The body says it more plainly than the header.
    expect(await timed("wait=10", { wait: "0.1s" })).toBeLessThan(5000);
    expect(await timed("handling=lenient; x=y,,wait=never")).toBeLessThan(5000);
  });

  test("can be waited for by GET", async () => {
    const me = await newOwner(server);
    await me.ok("POST", "/agents/register", { id: "a" });
    const { executionId } = await me.ok("POST", "/agents/a/execute", { wait: 0 });
    const waiting = me.call("GET", `/executions/${executionId}?wait=20s`);
    await completeNext(me);
    expect((await waiting).body.status).toBe("completed");
  });
});

async function completeNext(me: RestCaller): Promise<void> {
  const agent = me.as("a");
  const { tasks } = await agent.ok("POST", "/tasks/poll", { wait: 10 });
  const [{ id, leaseToken }] = tasks;
  await agent.ok("POST", `/tasks/${id}/complete`, { leaseToken });
}

describe("paths and verbs", () => {
  test.each([
    ["PUT", "/workflows", "GET, POST"],
    ["DELETE", "/workflows", "GET, POST"],
    ["GET", "/agents/register", "POST"],
    ["POST", "/sync/pull", "GET"],
    ["GET", "/tasks/poll", "POST"],
    ["OPTIONS", "/agents", "GET"],
  ])("%s %s is 405 and tells what is allowed", async (verb, path, allow) => {
    const me = await newOwner(server);
    const answer = await me.call(verb, path);
    expect([answer.status, answer.body.error.code]).toEqual([405, "METHOD_NOT_ALLOWED"]);
    expect(answer.headers.get("allow")).toBe(allow);
  });

  test("HEAD is GET without its body", async () => {
    const me = await newOwner(server);
    const head = await me.call("HEAD", "/workflows");
    const get = await me.call("GET", "/workflows");
    expect([head.status, head.text]).toEqual([200, ""]);
    expect(head.headers.get("content-length")).toBe(get.headers.get("content-length"));
    expect((await me.call("HEAD", "/workflows/none")).status).toBe(404);
    expect((await me.call("HEAD", "/sync/push")).status).toBe(405);
  });

  test.each([
    ["/workflow", "/api/v1/workflows"],
    ["/agent", "/api/v1/agents"],
    ["/sync/pul", "/api/v1/sync/pull"],
  ])("%s is 404 and names the nearest path", async (path, nearest) => {
    const me = await newOwner(server);
    const error = await me.refused("ROUTE_NOT_FOUND", "GET", path);
    expect(error.message).toContain(nearest);
    expect(error.details).toEqual({});
  });

  test.each(["", "/", "/workflows/", "/nothing/like/it", "/workflows//execute", "/constructor"])(
    "%s is 404",
    async (path) => {
      await (await newOwner(server)).refused("ROUTE_NOT_FOUND", "GET", path);
    },
  );

  test("outside of /api/v1 there is nothing of REST", async () => {
    for (const path of ["/", "/api/v2/workflows", "/api/v1x", "/sealflow.v1.Nothing/Get"]) {
      const response = await fetch(server.httpUrl + path);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: { code: "ROUTE_NOT_FOUND" } });
    }
  });
});

describe("headers", () => {
  test.each(["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])(
    "a body of type %j is 415",
    async (type) => {
      const me = await newOwner(server);
      const headers = { "content-type": type };
      const answer = await me.call("POST", "/workflows", { raw: '{"name":"w"}', headers });
      expect([answer.status, answer.body.error.code]).toEqual([415, "UNSUPPORTED_MEDIA_TYPE"]);
    },
  );

  test.each(["application/json; charset=utf-8", "Application/JSON"])(
    "a body of type %s is read",
    async (type) => {
      const me = await newOwner(server);
      const headers = { "content-type": type };
      const answer = await me.call("POST", "/workflows", { raw: '{"name":"w"}', headers });
      expect(answer.status).toBe(201);
    },
  );

  test("no body at all needs no type", async () => {
    const me = await newOwner(server);
    const id = await newWorkflow(me);
    expect((await me.call("POST", `/workflows/${id}/execute`)).status).toBe(202);
  });

  test("an answer to nobody says how to be somebody", async () => {
    const response = await fetch(`${server.httpUrl}/api/v1/workflows`);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toMatch(/^Bearer/);
  });
});
