import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newOwner, type RestCaller } from "./callers.ts";
import { head, openRaw } from "./raw-http.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// What is refused before it has arrived: its caller must get the answer all the same.

let server: TestServer;
let me: RestCaller;
beforeAll(async () => {
  server = await startTestServer();
  me = await newOwner(server);
});
afterAll(async () => {
  expect(faultsOf(server)).toEqual([]);
  await server[Symbol.asyncDispose]();
});

const MiB = 1024 * 1024;
const identity = () => ({
  authorization: `Bearer ${me.token}`,
  "x-agent-id": "laptop",
  "content-type": "application/json",
});
const post = (headers: Record<string, string | number>, path = "/api/v1/workflows") =>
  head(`POST ${path}`, { ...identity(), ...headers });

/** A chunk of `bytes` bytes in the chunked transfer coding. */
function chunk(bytes: number): string {
  return `${bytes.toString(16)}\r\n${" ".repeat(bytes)}\r\n`;
}

describe("a body that is too large", () => {
  test("is refused by its announced length, before it is sent", async () => {
    using raw = openRaw(server);
    raw.send(post({ "content-length": 5 * MiB }));
    const { status, body } = await raw.answer();
    expect([status, body.error.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
    expect(body.error.details).toEqual({ maxBytes: 4 * MiB });
  });

  test("is refused while it arrives when its length was not announced", async () => {
    using raw = openRaw(server);
    raw.send(post({ "transfer-encoding": "chunked" }));
    for (let sent = 0; sent < 5; sent += 1) raw.send(chunk(MiB));
    const { status, body } = await raw.answer();
    expect([status, body.error.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
  });

  test.each(["announced", "not announced"])("reaches an ordinary client: %s", async (how) => {
    const bytes = new Uint8Array(5 * MiB).fill(0x20);
    const stream = () =>
      new ReadableStream({
        start(controller) {
          for (let at = 0; at < bytes.length; at += 65536) {
            controller.enqueue(bytes.subarray(at, at + 65536));
          }
          controller.close();
        },
      });
    const response = await fetch(`${server.httpUrl}/api/v1/workflows`, {
      method: "POST",
      headers: identity(),
      body: how === "announced" ? bytes : stream(),
      duplex: "half",
    } as RequestInit);
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: "PAYLOAD_TOO_LARGE" } });
  });

  test("is asked for with 100-continue only when it is wanted", async () => {
    using raw = openRaw(server);
    raw.send(post({ "content-length": 12, expect: "100-continue" }));
    await raw.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
    raw.send('{"name":"w"}');
    expect((await raw.answer()).status).toBe(201);

    using large = openRaw(server);
    large.send(post({ "content-length": 5 * MiB, expect: "100-continue" }));
    const answer = await large.answer();
    expect(answer.status).toBe(413);
    expect(answer.text).not.toContain("100 Continue");
  });

  test("over Connect, by length, while it arrives, and with 100-continue", async () => {
    const path = "/sealflow.v1.WorkflowService/CreateWorkflow";
    using announced = openRaw(server);
    announced.send(post({ "content-length": 5 * MiB }, path));
    const first = await announced.answer();
    expect([first.status, first.body.code]).toEqual([429, "resource_exhausted"]);
    expect(first.body.details).toMatchObject([{ debug: { reason: "PAYLOAD_TOO_LARGE" } }]);

    using streamed = openRaw(server);
    streamed.send(post({ "transfer-encoding": "chunked" }, path));
    for (let sent = 0; sent < 5; sent += 1) streamed.send(chunk(MiB));
    expect((await streamed.answer()).body.code).toBe("resource_exhausted");

    using asked = openRaw(server);
    asked.send(post({ "content-length": 12, expect: "100-continue" }, path));
    await asked.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
    asked.send('{"name":"w"}');
    expect((await asked.answer()).body).toMatchObject({ name: "w" });
  });
});

describe("an answer that comes before its request is whole", () => {
  test.each(["/api/v1/workflows", "/sealflow.v1.WorkflowService/CreateWorkflow"])(
    "leaves the connection to %s usable",
    async (path) => {
      using raw = openRaw(server);
      const body = '{"name":"w"}';
      const headers = { "content-type": "application/json", "content-length": body.length };
      for (let i = 0; i < 3; i += 1) {
        raw.send(head(`POST ${path}`, headers));
        await raw.until(new RegExp(`(HTTP/1.1 401[\\s\\S]*){${i + 1}}`));
        await pause(20);
        raw.send(body);
      }
      raw.send(post({ "content-length": body.length }, path) + body);
      await raw.until(/HTTP\/1\.1 20[01]/);
    },
  );

  test("does not wait for ever for the rest", { timeout: 10_000 }, async () => {
    using raw = openRaw(server);
    const isClosed = new Promise((resolve) => raw.socket.once("close", () => resolve("closed")));
    raw.send(head("POST /api/v1/workflows", { "content-length": 4_000_000_000 }));
    expect((await raw.answer()).status).toBe(401);
    const drip = setInterval(() => raw.send("x".repeat(1000)), 100);
    expect(await Promise.race([isClosed, pause(5000, "open")])).toBe("closed");
    clearInterval(drip);
  });
});
