import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import { startTestServer, type TestServer, unlimited } from "../doors/server.ts";
import { openInChromium } from "./chromium.ts";
import { openWebSite, type WebSite } from "./web-site.ts";

let known: WebSite;
let unknown: WebSite;
let server: TestServer;
let token: string;

beforeAll(async () => {
  known = await openWebSite();
  unknown = await openWebSite();
  server = await startTestServer({
    corsOrigins: [known.origin],
    rateLimits: { ...unlimited, workflows: 50 },
  });
  token = await server.token({ sub: "me" });
  for (const site of [known, unknown]) site.give({ server: server.httpUrl, token });
});
afterAll(async () => {
  for (const part of [server, known, unknown]) await part[Symbol.asyncDispose]();
});

describe("a page in Chromium", () => {
  test("of an allowed origin lists, reads refusals, and is streamed what others push", async () => {
    const laptop = connect(server.httpUrl, { token, agentId: "laptop" });
    await laptop.workflows.createWorkflow({ name: "Count" });
    await using _ = await openInChromium(known.origin);
    expect(await known.nextReport()).toEqual({ list: { ok: { names: ["Count"], total: 1 } } });
    expect(await known.nextReport()).toEqual({ refusal: { ok: "WORKFLOW_NOT_FOUND" } });
    expect(await known.nextReport()).toEqual({ rest: { ok: { total: 1, limit: "50" } } });
    expect(await known.nextReport()).toEqual({ subscribed: { ok: true } });
    const note = { type: "note", entityId: "n1", encryptedData: "c2VhbGVk", version: "1" };
    await laptop.sync.pushState(note);
    expect(await known.nextReport()).toEqual({ stream: { ok: ["n1", "c2VhbGVk"] } });
  });

  test("of another origin reads nothing", async () => {
    await using _ = await openInChromium(unknown.origin);
    const failed = { failed: expect.stringContaining("Failed to fetch") };
    expect(await unknown.nextReport()).toEqual({ list: failed });
    expect(await unknown.nextReport()).toEqual({ refusal: { ok: "unreadable" } });
    expect(await unknown.nextReport()).toEqual({ rest: failed });
    expect(await unknown.nextReport()).toEqual({ stream: failed });
  });
});
