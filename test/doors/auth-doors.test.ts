import { connect } from "node:http2";
import { setTimeout as pause } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  agentHeaders,
  failureOf,
  newOwner,
  reasonOf,
  restCall,
  restCaller,
  rpcCaller,
  wires,
} from "./callers.ts";
import { forgedTokens } from "./forged-tokens.ts";
import { head, openRaw } from "./raw-http.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

const sharedSecret = { secret: "a secret of at least thirty-two bytes", issuer: "idp" };
let server: TestServer;
let withSecret: TestServer;
beforeAll(async () => {
  [server, withSecret] = await Promise.all([startTestServer(), startTestServer({ sharedSecret })]);
});
afterAll(async () => {
  expect([...faultsOf(server), ...faultsOf(withSecret)]).toEqual([]);
  await Promise.all([server, withSecret].map((it) => it[Symbol.asyncDispose]()));
});

describe("who cannot tell who he is", () => {
  test("is 401 through every door, whatever is wrong with the token", async () => {
    for (const target of [server, withSecret]) {
      for (const [fault, token] of Object.entries(await forgedTokens(target))) {
        const rest = await restCall(target, "GET /workflows", { headers: agentHeaders(token) });
        expect([fault, rest.status, rest.body?.error?.code]).toEqual([fault, 401, "UNAUTHORIZED"]);
        expect(rest.headers.get("www-authenticate")).toMatch(/^Bearer/);
        for (const wire of wires) {
          const call = rpcCaller(target, { token, agentId: "laptop" }, wire);
          const failure = await failureOf(call.workflows.listWorkflows({}));
          expect([fault, wire, failure.code]).toEqual([fault, wire, Code.Unauthenticated]);
          expect(reasonOf(failure)).toBe("UNAUTHORIZED");
        }
      }
    }
  });

  test.each([
    ["no header", {}],
    ["no agent id", { authorization: "Bearer TOKEN" }],
    ["an empty agent id", { authorization: "Bearer TOKEN", "x-agent-id": "" }],
    ["a broken agent id", { authorization: "Bearer TOKEN", "x-agent-id": "a/b" }],
    ["a reserved agent id", { authorization: "Bearer TOKEN", "x-agent-id": "register" }],
    ["no token", { "x-agent-id": "laptop" }],
    ["another scheme", { authorization: "Basic bWU6bWU=", "x-agent-id": "laptop" }],
    ["a token without its scheme", { authorization: "TOKEN", "x-agent-id": "laptop" }],
  ])("%s is 401", async (_, headers: Record<string, string>) => {
    const { token } = await newOwner(server);
    const sent = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace("TOKEN", token)]),
    );
    const answer = await restCall(server, "GET /workflows", { headers: sent });
    expect([answer.status, answer.body.error.code]).toEqual([401, "UNAUTHORIZED"]);
    expect(answer.body.error.details).toEqual({});
  });

  test("a token in the URL is none", async () => {
    const { token } = await newOwner(server);
    for (const name of ["token", "access_token", "authorization"]) {
      const answer = await restCall(server, `GET /workflows?${name}=${token}`, {
        headers: { "x-agent-id": "laptop" },
      });
      expect(answer.status).toBe(401);
    }
  });
});

describe("before the body is read", () => {
  test.each(["/api/v1/workflows", "/sealflow.v1.WorkflowService/CreateWorkflow"])(
    "%s refuses by its head alone",
    async (path) => {
      const type = { "content-type": "application/json" };
      for (const more of [
        { "content-length": 4_000_000_000 },
        { "transfer-encoding": "chunked" },
        { "content-length": 100, expect: "100-continue" },
      ]) {
        using raw = openRaw(server);
        raw.send(head(`POST ${path}`, { ...type, ...more }));
        const answer = await raw.answer(2000);
        expect(answer.status).toBe(401);
        expect(answer.text).not.toContain("100 Continue");
      }
    },
  );

  test("gRPC refuses a stream that has no message yet", async () => {
    const session = connect(server.grpcUrl);
    const stream = session.request({
      ...{ ":method": "POST", ":path": "/sealflow.v1.WorkflowService/CreateWorkflow" },
      ...{ "content-type": "application/grpc", te: "trailers", "x-agent-id": "laptop" },
    });
    const status = new Promise((resolve) => {
      stream.on("trailers", (fields) => resolve(fields["grpc-status"]));
      stream.on("response", (fields) => fields["grpc-status"] && resolve(fields["grpc-status"]));
    });
    stream.on("error", () => {});
    stream.write(Uint8Array.of(0, 0, 0));
    stream.resume();
    expect(await Promise.race([status, pause(2000, "no answer")])).toBe(
      String(Code.Unauthenticated),
    );
    session.destroy();
  });
});

describe("a token that is narrowed", () => {
  test("to an agent speaks for no other, and registers no other", async () => {
    const token = await server.token({ sub: "bound", agentId: "a" });
    const other = restCaller(server, { token, agentId: "b" });
    const answer = await other.call("GET", "/workflows");
    expect([answer.status, answer.body.error.code]).toEqual([403, "FORBIDDEN"]);
    const own = restCaller(server, { token, agentId: "a" });
    await own.refused("FORBIDDEN", "POST", "/agents/register", { id: "b" });
    await own.refused("FORBIDDEN", "DELETE", "/agents/b");
    await own.ok("POST", "/agents/register", { id: "a" });
    await own.ok("DELETE", "/agents/a");
    const failure = await failureOf(
      rpcCaller(server, { token, agentId: "b" }).workflows.listWorkflows({}),
    );
    expect([failure.code, reasonOf(failure)]).toEqual([Code.PermissionDenied, "FORBIDDEN"]);
  });

  test("to some groups is 403 in the others", async () => {
    const token = await server.token({ sub: "scoped", scope: "other sealflow:workflows" });
    const me = restCaller(server, { token, agentId: "a" });
    const { id } = await me.ok("POST", "/workflows", { name: "w" });
    const { executionId } = await me.ok("POST", `/workflows/${id}/execute`);
    await me.ok("GET", `/executions/${executionId}`);
    await me.refused("FORBIDDEN", "GET", "/agents");
    await me.refused("FORBIDDEN", "POST", "/tasks/poll", { wait: 0 });
    await me.refused("FORBIDDEN", "GET", "/sync/pull");
    const sync = await server.token({ sub: "scoped", scope: "sealflow:sync" });
    const device = restCaller(server, { token: sync, agentId: "a" });
    await device.ok("GET", "/sync/pull");
    await device.refused("FORBIDDEN", "GET", "/sync/pull?kinds=workflow");
    const stream = rpcCaller(server, { token: me.token, agentId: "a" }).sync.subscribe({});
    const failure = await failureOf(stream[Symbol.asyncIterator]().next());
    expect(failure.code).toBe(Code.PermissionDenied);
  });
});

describe("a shared secret", () => {
  const hourMs = 3_600_000;
  const sign = (claims: Record<string, unknown>, key = sharedSecret.secret) =>
    new SignJWT({ iss: "idp", exp: Math.floor((Date.now() + hourMs) / 1000), ...claims })
      .setProtectedHeader({ alg: "HS256" })
      .sign(Buffer.from(key));

  test("signs tokens of its own", async () => {
    const token = await sign({ sub: "theirs" });
    const me = restCaller(withSecret, { token, agentId: "laptop" });
    expect(await me.ok("GET", "/workflows")).toMatchObject({ total: 0 });
    const bound = await sign({ sub: "theirs", agent_id: "a", scope: "sealflow:sync" });
    const agent = restCaller(withSecret, { token: bound, agentId: "a" });
    await agent.ok("GET", "/sync/pull");
    await agent.refused("FORBIDDEN", "GET", "/workflows");
    expect((await agent.as("b").call("GET", "/sync/pull")).status).toBe(403);
  });

  test.each([
    ["another issuer", { sub: "a", iss: "other" }],
    ["expired", { sub: "a", exp: 1_700_000_000 }],
    ["without exp", { sub: "a", exp: undefined }],
    ["without sub", {}],
    ["a scope that is no text", { sub: "a", scope: ["sealflow:sync"] }],
    ["an agent that is none", { sub: "a", agent_id: "a b" }],
  ])("%s is 401", async (_, claims) => {
    const me = restCaller(withSecret, { token: await sign(claims), agentId: "a" });
    await me.refused("UNAUTHORIZED", "GET", "/workflows");
  });

  test("another secret is 401, and so is any where none is set", async () => {
    const wrong = await sign({ sub: "a" }, "another secret of at least thirty-two bytes");
    await restCaller(withSecret, { token: wrong, agentId: "a" }).refused(
      ...(["UNAUTHORIZED", "GET", "/workflows"] as const),
    );
    const right = await sign({ sub: "a" });
    await restCaller(server, { token: right, agentId: "a" }).refused(
      ...(["UNAUTHORIZED", "GET", "/workflows"] as const),
    );
  });

  test("leaves the server's own tokens as they are", async () => {
    expect(await (await newOwner(withSecret)).ok("GET", "/workflows")).toMatchObject({ total: 0 });
  });
});
