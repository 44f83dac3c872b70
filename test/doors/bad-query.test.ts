import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectRefused, newOwner } from "./callers.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// What a query or a path can say wrong.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

describe("a query", () => {
  test.each([
    ["/workflows?limit=0", "limit"],
    ["/workflows?limit=-1", "limit"],
    ["/workflows?limit=x", "limit"],
    ["/workflows?limit=", "limit"],
    ["/workflows?limit=1.5", "limit"],
    ["/workflows?limit=0x10", "limit"],
    ["/workflows?status=foo", "status"],
    ["/workflows?status=RUNNING", "status"],
    ["/workflows?status=constructor", "status"],
    ["/agents?status=running", "status"],
    ["/workflows?pageToken=%00", "pageToken"],
    ["/workflows?pageToken=e30", "pageToken"],
    ["/workflows?pageToken=W10", "pageToken"],
    ["/workflows?pageToken=WyJ3b3JrZmxvd3MgIiwxZTk5LCJhXHUwMDAwIl0", "pageToken"],
    ["/sync/pull?since=-1", "since"],
    ["/sync/pull?since=0.5", "since"],
    ["/sync/pull?since=9007199254740992", "since"],
    ["/sync/pull?since=yesterday", "since"],
    ["/sync/pull?since=99999999999999999999999", "since"],
    ["/sync/pull?limit=0", "limit"],
    ["/sync/pull?wait=-1s", "wait"],
    ["/sync/pull?wait=soon", "wait"],
    ["/sync/pull?excludeOwn=maybe", "excludeOwn"],
    ["/sync/pull?kinds=workflow,foo", "kinds"],
    ["/sync/pull?kinds=ready", "kinds"],
    ["/sync/pull?types=", "types[0]"],
    ["/sync/pull?entityIds=a%00", "entityIds"],
    ["/executions/x?wait=-1", "wait"],
    ["/sync/subscribe?since=-1", "since"],
    ["/sync/subscribe?since=yesterday", "since"],
    ["/sync/subscribe?kinds=up_to_date", "kinds"],
    ["/sync/subscribe?heartbeat=0.5", "heartbeat"],
    ["/sync/subscribe?heartbeat=often", "heartbeat"],
    ["/sync/subscribe?excludeOwn=1", "excludeOwn"],
    ["/sync/subscribe?entityIds=", "entityIds[0]"],
  ])("%s is 400 for %s", async (path, field) => {
    const me = await newOwner(server);
    const answer = await me.call("GET", path);
    expectRefused(answer, 400, "VALIDATION_ERROR");
    expect(answer.body.error.details.fields).toMatchObject([{ field }]);
  });

  test("a word that is not known is told the ones that are", async () => {
    const error = await (await newOwner(server)).refused(
      "VALIDATION_ERROR",
      "GET",
      "/workflows?status=foo",
    );
    for (const word of ["pending", "running", "completed", "failed"]) {
      expect(error.details.fields[0].message).toContain(word);
    }
  });

  test.each(["1000000000", "99999999999999999999"])("a limit of %s is 200", async (limit) => {
    const me = await newOwner(server);
    for (let i = 0; i < 201; i += 1) await me.ok("POST", "/workflows", { name: `${i}` });
    const page = await me.ok("GET", `/workflows?limit=${limit}`);
    expect(page.workflows).toHaveLength(200);
    expect(page).toMatchObject({ total: 201, hasMore: true });
  });

  test.each(["%", "%zz", "%ff", "%ed%a0%80", "%c0%80"])("%s is no text: 400", async (text) => {
    const me = await newOwner(server);
    expectRefused(await me.call("GET", `/workflows?x=${text}`), 400, "VALIDATION_ERROR");
  });

  test.each(["__proto__", "constructor", "toString"])("%s is ignored", async (name) => {
    const me = await newOwner(server);
    expect(await me.ok("GET", `/workflows?${name}=1&${name}[limit]=1`)).toMatchObject({ total: 0 });
  });
});

describe("a path", () => {
  test.each(["%", "%zz", "%ff", "%ed%a0%80"])("with %s is 404", async (id) => {
    const me = await newOwner(server);
    expectRefused(await me.call("GET", `/workflows/${id}`), 404, "ROUTE_NOT_FOUND");
  });

  test.each(["%00", "x".repeat(129), "x".repeat(9000)])("with the id %s is 400", async (id) => {
    const me = await newOwner(server);
    expectRefused(await me.call("GET", `/workflows/${id}`), 400, "VALIDATION_ERROR");
  });

  test.each(["__proto__", "..%2f..", "' OR 1=1 --", "🌱", "%0d%0aSet-Cookie:x"])(
    "with the id %s is 404, and repeats it whole",
    async (id) => {
      const me = await newOwner(server);
      const answer = await me.call("GET", `/workflows/${id.replaceAll(" ", "%20")}`);
      expectRefused(answer, 404, "WORKFLOW_NOT_FOUND");
      expect(answer.body.error.details.workflowId).toBe(decodeURIComponent(id));
    },
  );
});

test("nothing of this was a fault of the server, and it goes on serving", async () => {
  expect(faultsOf(server)).toEqual([]);
  expect((await (await newOwner(server)).call("GET", "/workflows")).status).toBe(200);
});
