import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newOwner, restCall } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

const origin = "https://app.example";
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ corsOrigins: [origin] });
});
afterAll(() => server[Symbol.asyncDispose]());

function preflight(target: TestServer, from: string, path = "/api/v1/workflows") {
  return fetch(target.httpUrl + path, {
    method: "OPTIONS",
    headers: {
      origin: from,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,x-agent-id,content-type",
    },
  });
}

const list = (headers: Headers, name: string) =>
  (headers.get(name) ?? "").toLowerCase().split(", ");

describe("a browser of an origin on the list", () => {
  test.each([
    ...["/api/v1/workflows", "/api/v1/sync/subscribe", "/api/v1/auth/token"],
    "/sealflow.v1.SyncService/Subscribe",
  ])("asks before %s without a token", async (path) => {
    const { status, headers } = await preflight(server, origin, path);
    expect(status).toBe(204);
    expect(headers.get("access-control-allow-origin")).toBe(origin);
    expect(headers.get("vary")).toBe("origin");
    expect(list(headers, "access-control-allow-methods")).toEqual([
      ...["get", "post", "patch", "delete"],
    ]);
    expect(list(headers, "access-control-allow-headers")).toEqual(
      expect.arrayContaining([
        ...["authorization", "x-agent-id", "content-type", "idempotency-key", "prefer"],
        ...["last-event-id", "connect-protocol-version", "connect-timeout-ms", "x-grpc-web"],
      ]),
    );
    expect(headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("reads answers, errors too, and the headers that matter", async () => {
    const me = await newOwner(server);
    const exposed = [
      ...["location", "retry-after", "x-ratelimit-limit", "x-ratelimit-remaining"],
      ...["x-ratelimit-reset", "grpc-status", "grpc-message", "grpc-status-details-bin"],
    ];
    for (const answer of [
      await me.call("GET", "/workflows", { headers: { origin } }),
      await me.call("HEAD", "/sync/subscribe", { headers: { origin } }),
      await restCall(server, "GET /workflows", { headers: { origin } }),
      await restCall(server, "GET /nothing", { headers: { origin } }),
    ]) {
      expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
      expect(list(answer.headers, "access-control-expose-headers")).toEqual(exposed);
    }
    const rpc = await fetch(`${server.httpUrl}/sealflow.v1.WorkflowService/ListWorkflows`, {
      method: "POST",
      headers: {
        ...{ origin, "content-type": "application/json", "x-agent-id": "laptop" },
        authorization: `Bearer ${me.token}`,
      },
      body: "{}",
    });
    expect([rpc.status, rpc.headers.get("access-control-allow-origin")]).toEqual([200, origin]);
    await rpc.text();
  });
});

test.each(["https://evil.example", "https://app.example.evil", "http://app.example", "null"])(
  "the origin %s is told nothing",
  async (from) => {
    const { headers } = await preflight(server, from);
    expect(headers.get("access-control-allow-origin")).toBeNull();
    expect(headers.get("access-control-allow-methods")).toBeNull();
    const me = await newOwner(server);
    const answer = await me.call("GET", "/workflows", { headers: { origin: from } });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, null]);
    expect(answer.headers.get("vary")).toBe("origin");
  },
);

test("off unless it is asked for", async () => {
  await using closed = await startTestServer();
  const { status, headers } = await preflight(closed, origin);
  expect(status).toBe(405);
  expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
});

test("a star allows any origin", async () => {
  await using open = await startTestServer({ corsOrigins: ["*"] });
  const { headers } = await preflight(open, "https://anything.example");
  expect(headers.get("access-control-allow-origin")).toBe("https://anything.example");
});
