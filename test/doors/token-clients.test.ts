import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GoingAwayReason, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import { newClient } from "../../src/calls/auth/clients.ts";
import type { Store } from "../../src/storage/port.ts";
import { loadServerKey } from "../../src/storage/server-key.ts";
import { openSqliteStore } from "../../src/storage/sqlite/open.ts";
import { type RestOptions, restCall, restCaller } from "./callers.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";
import { openWay } from "./streams.ts";

// Clients of POST /auth/token, made and removed beside the running server, as the commands do.

let server: TestServer;
let beside: Store;
beforeAll(async () => {
  server = await startTestServer();
  const { dataDir } = server;
  beside = await openSqliteStore({
    path: join(dataDir, "sealflow.db"),
    masterKey: loadServerKey({ dataDir, hasKeyCheck: true }).key,
    clock: { wallUs: () => Date.now() * 1000, steadyUs: () => Date.now() * 1000 },
    exclusive: false,
  });
});
afterAll(async () => {
  expect(faultsOf(server)).toEqual([]);
  await beside[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** How long the server may take to see what was written beside it. */
const noticedMs = 1000;

async function addClient(name: string, { agentId = "", scope = "" } = {}) {
  const made = newClient({ name, owner: name, agentId, scope, nowUs: Date.now() * 1000 });
  await beside.clients.addClient(made.client);
  await pause(noticedMs);
  return { id: made.client.id, secret: made.secret };
}

const ask = (options: RestOptions) => restCall(server, "POST /auth/token", options);

function asJson({ id, secret }: { id: string; secret: string }, more: object = {}) {
  const grant = { grant_type: "client_credentials", client_id: id, client_secret: secret };
  return ask({ body: { ...grant, ...more } });
}

test("a client draws tokens by JSON, form and Basic", async () => {
  const client = await addClient("three ways");
  const form = new URLSearchParams({
    ...{ grant_type: "client_credentials", client_id: client.id, client_secret: client.secret },
  });
  const basic = Buffer.from(`${client.id}:${client.secret}`).toString("base64");
  const urlencoded = { "content-type": "application/x-www-form-urlencoded" };
  const answers = [
    await asJson(client),
    await ask({ raw: form.toString(), headers: urlencoded }),
    await ask({
      raw: "grant_type=client_credentials",
      headers: { ...urlencoded, authorization: `Basic ${basic}` },
    }),
  ];
  for (const answer of answers) {
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.body)).toEqual(["access_token", "token_type", "expires_in"]);
    expect(answer.body).toMatchObject({ token_type: "Bearer", expires_in: 3600 });
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const me = restCaller(server, { token: answer.body.access_token, agentId: "laptop" });
    await me.ok("GET", "/workflows");
  }
});

test("a token is bound and narrowed as its client is", async () => {
  const client = await addClient("narrow", { agentId: "a", scope: "sealflow:sync sealflow:tasks" });
  const { body } = await asJson(client);
  const me = restCaller(server, { token: body.access_token, agentId: "a" });
  await me.ok("GET", "/sync/pull");
  await me.refused("FORBIDDEN", "GET", "/workflows");
  expect((await me.as("b").call("GET", "/sync/pull")).status).toBe(403);
  const narrower = await asJson(client, { scope: "sealflow:sync" });
  const device = restCaller(server, { token: narrower.body.access_token, agentId: "a" });
  await device.refused("FORBIDDEN", "POST", "/tasks/poll", { wait: 0 });
  const wider = await asJson(client, { scope: "sealflow:workflows" });
  expect([wider.status, wider.body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
});

test("who is no client gets nothing", async () => {
  const client = await addClient("refused");
  for (const wrong of [
    await asJson({ ...client, secret: "wrong" }),
    await asJson({ ...client, id: "cl_nobody" }),
    await ask({ body: { grant_type: "client_credentials" } }),
    await ask({}),
  ]) {
    expect([wrong.status, wrong.body.error.code]).toEqual([401, "UNAUTHORIZED"]);
    expect(wrong.headers.get("cache-control")).toBe("no-store");
    expect(wrong.headers.get("www-authenticate")).toMatch(/^Basic/);
    expect(wrong.text).not.toContain(client.secret);
  }
  expect((await asJson(client, { grant_type: "password" })).status).toBe(400);
  expect((await ask({ raw: "{" })).status).toBe(400);
  expect((await ask({ raw: "x", headers: { "content-type": "text/plain" } })).status).toBe(415);
  expect((await ask({ raw: " ".repeat(20_000) })).status).toBe(413);
  const wrongVerb = await restCall(server, "GET /auth/token");
  expect([wrongVerb.status, wrongVerb.headers.get("allow")]).toEqual([405, "POST"]);
});

test.each(["grpc", "rest"] as const)(
  "removing a client ends its tokens within a second, and its streams over %s",
  async (way) => {
    const name = `removed ${way}`;
    const client = await addClient(name);
    const { body } = await asJson(client);
    const me = restCaller(server, { token: body.access_token, agentId: "laptop" });
    const { record } = await me.ok("POST", "/sync/push", {
      ...{ type: "note", entityId: "n", version: "1", encryptedData: "x" },
    });
    const stream = openWay(server, me, {}, way);
    expect(await stream.words(2)).toEqual(["READY", "UP_TO_DATE"]);

    const removedMs = performance.now();
    expect(await beside.clients.removeClient(name)).toBe(true);
    const last = await stream.next();
    expect(performance.now() - removedMs).toBeLessThan(noticedMs + 500);
    expect(last).toMatchObject({
      kind: UpdateKind.GOING_AWAY,
      reason: GoingAwayReason.TOKEN_REVOKED,
      cursor: BigInt(record.cursor),
    });
    expect(await stream.isOver()).toBe(true);
    await me.refused("UNAUTHORIZED", "GET", "/workflows");
    expect((await asJson(client)).status).toBe(401);
    // A client of the same name later is another one.
    await addClient(name);
    await me.refused("UNAUTHORIZED", "GET", "/workflows");
  },
);

test.each(["grpc", "rest"] as const)(
  "a stream over %s ends when its token expires",
  async (way) => {
    const token = await server.token({ sub: `short ${way}`, ttlSeconds: 2 });
    const beganMs = performance.now();
    const stream = openWay(server, { token, agentId: "laptop" }, {}, way);
    expect(await stream.words(2)).toEqual(["READY", "UP_TO_DATE"]);
    const last = await stream.next();
    expect(last.kind).toBe(UpdateKind.GOING_AWAY);
    expect(last.reason).toBe(GoingAwayReason.TOKEN_EXPIRED);
    expect(await stream.isOver()).toBe(true);
    expect(performance.now() - beganMs).toBeLessThan(3500);
  },
);
