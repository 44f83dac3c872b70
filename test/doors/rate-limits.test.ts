import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { defaultRateLimits } from "../../src/calls/rate-limits.ts";
import { agentHeaders, failureOf, newOwner, reasonOf, restCall, rpcCaller } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ rateLimits: defaultRateLimits });
});
afterAll(() => server[Symbol.asyncDispose]());

test("the 51st call of a minute is refused, whichever doors it was counted at", async () => {
  const me = await newOwner(server);
  const calls = [rpcCaller(server, me), rpcCaller(server, me, "connect")];
  for (let i = 0; i < 20; i += 1) {
    const answer = await me.call("GET", i % 2 === 0 ? "/workflows" : "/workflows/none");
    expect(answer.headers.get("x-ratelimit-limit")).toBe("50");
    expect(answer.headers.get("x-ratelimit-remaining")).toBe(String(49 - i));
    expect(Number(answer.headers.get("x-ratelimit-reset"))).toBeGreaterThan(50);
  }
  for (let i = 0; i < 15; i += 1) {
    for (const { workflows } of calls) await workflows.listWorkflows({});
  }
  const refused = await me.call("POST", "/workflows", { body: { name: "w" } });
  expect([refused.status, refused.body.error.code]).toEqual([429, "RATE_LIMITED"]);
  expect(refused.body.error.details).toEqual({ group: "workflows" });
  expect(refused.body.error.message).toContain("50 calls a minute for Workflows");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(50);
  expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
  expect(refused.headers.get("x-ratelimit-remaining")).toBe("0");
  for (const { workflows } of calls) {
    const failure = await failureOf(workflows.listWorkflows({}));
    expect([failure.code, reasonOf(failure)]).toEqual([Code.ResourceExhausted, "RATE_LIMITED"]);
    const [retry] = failure.findDetails(RetryInfoSchema);
    expect(Number(retry?.retryDelay?.seconds)).toBeGreaterThan(50);
    expect(failure.metadata.get("x-ratelimit-limit")).toBe("50");
  }
  // Other groups, another agent of the same owner, another owner.
  expect((await me.call("GET", "/agents")).headers.get("x-ratelimit-limit")).toBe("100");
  expect((await me.call("GET", "/sync/pull")).headers.get("x-ratelimit-limit")).toBe("100");
  expect((await me.call("GET", "/executions/none")).headers.get("x-ratelimit-limit")).toBe("600");
  const poll = await me.call("POST", "/tasks/poll", { body: { wait: 0 } });
  expect(poll.headers.get("x-ratelimit-limit")).toBe("6000");
  expect((await me.as("phone").call("GET", "/workflows")).status).toBe(429);
  expect((await (await newOwner(server)).call("GET", "/workflows")).status).toBe(200);
});

test("a listing of executions and a run count as workflows, a call of an agent as agents", async () => {
  const me = await newOwner(server);
  const limits = async (verb: string, path: string) =>
    (await me.call(verb, path)).headers.get("x-ratelimit-limit");
  expect(await limits("GET", "/workflows/none/executions")).toBe("50");
  expect(await limits("POST", "/workflows/none/execute")).toBe("50");
  expect(await limits("POST", "/agents/none/execute")).toBe("100");
  expect(await limits("POST", "/executions/none/cancel")).toBe("600");
});

test("gRPC tells its limit too, and a stream costs one call", async () => {
  const me = await newOwner(server);
  const { sync } = rpcCaller(server, me);
  let remaining = "";
  const onHeader = (headers: Headers) => {
    remaining = headers.get("x-ratelimit-remaining") ?? "";
  };
  await sync.pullState({}, { onHeader });
  expect(remaining).toBe("99");
  const stream = sync.subscribe({}, { onHeader })[Symbol.asyncIterator]();
  await stream.next();
  expect(remaining).toBe("98");
  await stream.next();
  await stream.return?.();
  await sync.pullState({}, { onHeader });
  expect(remaining).toBe("97");
});

test("calls of nobody count nowhere; calls that are wrong count", async () => {
  const me = await newOwner(server);
  for (let i = 0; i < 60; i += 1) {
    const headers = { ...agentHeaders(me.token), "x-agent-id": "not an id" };
    expect((await restCall(server, "GET /workflows", { headers })).status).toBe(401);
  }
  const remaining = async (body: string) =>
    (await me.call("POST", "/workflows", { raw: body })).headers.get("x-ratelimit-remaining");
  expect(await remaining("{")).toBe("49");
  expect(await remaining("{}")).toBe("48");
});

test("a group that is off has no limit", async () => {
  await using open = await startTestServer({
    rateLimits: { ...defaultRateLimits, workflows: null, sync: 2 },
  });
  const me = await newOwner(open);
  for (let i = 0; i < 60; i += 1) {
    const answer = await me.call("GET", "/workflows");
    expect([answer.status, answer.headers.get("x-ratelimit-limit")]).toEqual([200, null]);
  }
  const statuses = [];
  for (let i = 0; i < 3; i += 1) statuses.push((await me.call("GET", "/sync/pull")).status);
  expect(statuses).toEqual([200, 200, 429]);
});

const trustedProxies = ["127.0.0.1", "10.0.0.0/8"];

/** Asks for a token as a client that does not exist. */
function askToken(target: TestServer, id: string, forwarded?: string) {
  return restCall(target, "POST /auth/token", {
    body: { grant_type: "client_credentials", client_id: id, client_secret: "x" },
    headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  });
}

test("asking for tokens is limited by client and address", async () => {
  await using target = await startTestServer({ rateLimits: defaultRateLimits, trustedProxies });
  for (let i = 0; i < 10; i += 1) {
    const answer = await askToken(target, "cl_a");
    expect(answer.status).toBe(401);
    expect(answer.headers.get("x-ratelimit-limit")).toBe("10");
    expect(answer.headers.get("x-ratelimit-remaining")).toBe(String(9 - i));
  }
  const refused = await askToken(target, "cl_a");
  expect([refused.status, refused.body.error.code]).toEqual([429, "RATE_LIMITED"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await askToken(target, "cl_b")).status).toBe(401);
  expect((await askToken(target, "cl_a", "192.0.2.1")).status).toBe(401);
});

test("asking for tokens is limited by address alone, above that", async () => {
  await using target = await startTestServer({ rateLimits: defaultRateLimits, trustedProxies });
  const from = "192.0.2.1, 10.1.2.3";
  for (let i = 0; i < 60; i += 1) {
    expect((await askToken(target, `cl_${i}`, from)).status).toBe(401);
  }
  expect((await askToken(target, "cl_new", from)).status).toBe(429);
  // What a client writes itself stands before what the proxies added, and counts for nothing.
  expect((await askToken(target, "cl_new", `192.0.2.77, ${from}`)).status).toBe(429);
  expect((await askToken(target, "cl_new", "192.0.2.2, 10.1.2.3")).status).toBe(401);
});

test("nobody's X-Forwarded-For is believed unless he is a trusted proxy", async () => {
  await using target = await startTestServer({ rateLimits: defaultRateLimits });
  for (let i = 0; i < 60; i += 1) {
    expect((await askToken(target, `cl_${i}`, `192.0.2.${i}`)).status).toBe(401);
  }
  expect((await askToken(target, "cl_new", "192.0.2.200")).status).toBe(429);
});

test("forged tokens are 401, and 429 from the 601st of an address", async () => {
  await using target = await startTestServer({ rateLimits: defaultRateLimits, trustedProxies });
  const { token } = await newOwner(target);
  const [head, claims, signature = ""] = token.split(".");
  const forged = (i: number) => `${head}.${claims}.${signature.slice(0, -6)}${100000 + i}`;
  const call = (i: number, forwarded: string) =>
    restCall(target, "GET /workflows", {
      headers: { ...agentHeaders(forged(i)), "x-forwarded-for": forwarded },
    });
  for (let i = 0; i < 600; i += 20) {
    const batch = Array.from({ length: 20 }, (_, k) => call(i + k, "192.0.2.1"));
    for (const { status } of await Promise.all(batch)) expect(status).toBe(401);
  }
  const refused = await call(600, "192.0.2.1");
  expect([refused.status, refused.body.error.code]).toEqual([429, "RATE_LIMITED"]);
  expect((await call(601, "192.0.2.2")).status).toBe(401);
  // Missing and malformed headers stay 401; who is known is served.
  const nobody = { headers: { "x-forwarded-for": "192.0.2.1" } };
  expect((await restCall(target, "GET /workflows", nobody)).status).toBe(401);
  const known = { ...agentHeaders(token), "x-forwarded-for": "192.0.2.1" };
  expect((await restCall(target, "GET /workflows", { headers: known })).status).toBe(200);
});
