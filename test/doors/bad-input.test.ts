import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectRefused, newOwner } from "./callers.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// What a body can say wrong. Queries and paths are in bad-query.test.ts, broken HTTP in
// bad-http.test.ts, broken gRPC in bad-rpc.test.ts.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const MiB = 1024 * 1024;

describe("a body", () => {
  const bodies: Record<string, string | Uint8Array<ArrayBuffer>> = {
    "broken JSON": '{"name":',
    "two values": '{"name":"w"} {}',
    "an array": '[{"name":"w"}]',
    "a string": '"name"',
    "a number": "5",
    null: "null",
    "only spaces": "  ",
    "a comment": '{"name":"w"/*x*/}',
    "not a number": '{"name":"w","requiredCapabilities":NaN}',
    "UTF-16": new Uint8Array(Buffer.from('{"name":"w"}', "utf16le")),
    "invalid UTF-8": new Uint8Array([...Buffer.from('{"name":"'), 0xff, 0xfe, 0x22, 0x7d]),
    "an overlong form": new Uint8Array([...Buffer.from('{"name":"'), 0xc0, 0x80, 0x22, 0x7d]),
    "an encoded surrogate": new Uint8Array([
      ...Buffer.from('{"name":"'),
      ...[0xed, 0xa0, 0x80, 0x22, 0x7d],
    ]),
    "a raw NUL": '{"name":"a\0b"}',
    "an escaped NUL": '{"name":"a\\u0000b"}',
    "a lone surrogate": '{"name":"a\\ud800b"}',
    "surrogates in the wrong order": '{"name":"\\udc00\\ud800"}',
    "a million open brackets": "[".repeat(1_000_000),
  };

  test.each(Object.keys(bodies))("%s is 400", async (name) => {
    const me = await newOwner(server);
    const answer = await me.call("POST", "/workflows", { raw: bodies[name] ?? "" });
    expectRefused(answer, 400, "VALIDATION_ERROR");
    expect(answer.body.error.details.fields.length).toBeGreaterThan(0);
  });

  const inputs: Record<string, string> = {
    "a NUL": '{"a":["\\u0000"]}',
    "a NUL in a key": '{"\\u0000":1}',
    "a lone surrogate": '"\\ud800"',
    "a lone surrogate in a key": '{"a":{"\\udfff":1}}',
    "101 levels": `${"[".repeat(101)}${"]".repeat(101)}`,
    "100,000 levels": `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
  };

  test.each(Object.keys(inputs))(
    "%s inside input is 400, and is ignored elsewhere",
    async (name) => {
      const me = await newOwner(server);
      await me.ok("POST", "/agents/register", { id: "a" });
      const body = (field: string) => ({ raw: `{"wait":0,"${field}":${inputs[name]}}` });
      const answer = await me.call("POST", "/agents/a/execute", body("input"));
      expectRefused(answer, 400, "VALIDATION_ERROR");
      expect(answer.body.error.details.fields).toMatchObject([{ field: "input" }]);
      expect((await me.call("POST", "/agents/a/execute", body("unknown"))).status).toBe(202);
    },
  );

  test("names every field of a wrong type, as REST spells it", async () => {
    const me = await newOwner(server);
    const one = await me.call("POST", "/workflows", { body: { name: 5 } });
    expectRefused(one, 400, "VALIDATION_ERROR");
    expect(one.body.error.details).toEqual({
      fields: [{ field: "name", message: "must be a string" }],
    });
    const body = {
      name: ["w"],
      encryptedData: {},
      allowPublic: "yes",
      requiredCapabilities: "text",
    };
    const all = await me.call("POST", "/workflows", { body });
    expect(all.body.error.details.fields.map(({ field }: { field: string }) => field)).toEqual([
      ...["name", "encryptedData", "allowPublic", "requiredCapabilities"],
    ]);
  });

  test("lists twenty broken rules and says that there are more", async () => {
    const me = await newOwner(server);
    const capabilities = Array.from({ length: 30 }, (_, i) => `not fine ${i}`);
    const answer = await me.call("POST", "/agents/register", { body: { id: "a", capabilities } });
    expectRefused(answer, 400, "VALIDATION_ERROR");
    expect(answer.body.error.details.fields).toHaveLength(20);
    expect(answer.body.error.details.truncated).toBe(true);
    expect(answer.text.length).toBeLessThan(5000);
  });

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty"])(
    "a field named %s is one that is not known",
    async (name) => {
      const me = await newOwner(server);
      const raw = `{"${name}":{"name":"polluted","allowPublic":true}}`;
      const answer = await me.call("POST", "/workflows", { raw });
      expectRefused(answer, 400, "VALIDATION_ERROR");
      expect(answer.body.error.details.fields).toEqual([{ field: "name", message: "is required" }]);
      const { id } = await me.ok("POST", "/workflows", { name: "w" });
      const input = `{"input":{"${name}":{"a":1}},"wait":0}`;
      expect((await me.call("POST", `/workflows/${id}/execute`, { raw: input })).status).toBe(202);
      await me.ok("POST", "/agents/register", { id: "a" });
      const { tasks } = await me.as("a").ok("POST", "/tasks/poll", { wait: 5 });
      expect(JSON.stringify(tasks[0].input)).toBe(`{"${name}":{"a":1}}`);
      expect(Object.hasOwn(Object.prototype, "allowPublic")).toBe(false);
    },
  );

  test("a payload of 1 MiB is taken, one byte more is 400", async () => {
    const me = await newOwner(server);
    const push = (bytes: number) => ({
      body: { type: "note", entityId: "n", version: "1", encryptedData: "x".repeat(bytes) },
    });
    const answer = await me.call("POST", "/sync/push", push(MiB + 1));
    expectRefused(answer, 400, "VALIDATION_ERROR");
    expect(answer.body.error.details.fields).toMatchObject([{ field: "encryptedData" }]);
    expect((await me.call("POST", "/sync/push", push(MiB))).status).toBe(200);
    // Bytes, not characters.
    const wide = { name: "w", encryptedData: "ä".repeat(MiB / 2 + 1) };
    expectRefused(await me.call("POST", "/workflows", { body: wide }), 400, "VALIDATION_ERROR");
  });

  test("an input of 256 KiB is taken, more is 400", async () => {
    const me = await newOwner(server);
    await me.ok("POST", "/agents/register", { id: "a" });
    const execute = (input: string) => me.call("POST", "/agents/a/execute", { body: { input } });
    expect((await execute("x".repeat(256 * 1024 - 2))).status).toBe(202);
    expectRefused(await execute("x".repeat(256 * 1024 - 1)), 400, "VALIDATION_ERROR");
  });

  test.each([
    ["timeout", "-1s"],
    ["timeout", 0],
    ["timeout", "soon"],
    ["timeout", "1m"],
    ["timeout", { seconds: 1 }],
    ["wait", -1],
    ["wait", "-0.5s"],
    ["wait", true],
    ["startTimeout", "-99999999999999999999s"],
    ["maxAttempts", 0],
    ["maxAttempts", -1],
    ["maxAttempts", 1.5],
    ["maxAttempts", "three"],
    ["atMostOnce", 1],
  ])("execute with %s %j is 400", async (name, value) => {
    const me = await newOwner(server);
    await me.ok("POST", "/agents/register", { id: "a" });
    const answer = await me.call("POST", "/agents/a/execute", { body: { [name]: value } });
    expectRefused(answer, 400, "VALIDATION_ERROR");
    expect(answer.body.error.details.fields).toMatchObject([{ field: name }]);
  });

  test.each([
    ["timeout", 1e300],
    ["timeout", "99999999999999999999999999s"],
    ["maxAttempts", 1e9],
    ["maxAttempts", 1e18],
    ["startTimeout", 1e12],
  ])("execute with %s %j is taken as the limit", async (name, value) => {
    const me = await newOwner(server);
    await me.ok("POST", "/agents/register", { id: "a" });
    const body = { wait: 0, [name]: value };
    expect((await me.call("POST", "/agents/a/execute", { body })).status).toBe(202);
  });

  test.each([1e300, 2 ** 53, -1, 0.5, "1e3", "x", [1], {}])(
    "an expectedRevision of %j is 400",
    async (expectedRevision) => {
      const me = await newOwner(server);
      const record = { type: "note", entityId: "n", version: "1", encryptedData: "x" };
      const answer = await me.call("POST", "/sync/push", { body: { ...record, expectedRevision } });
      expectRefused(answer, 400, "VALIDATION_ERROR");
    },
  );

  test("records that are no list of objects are 400", async () => {
    const me = await newOwner(server);
    for (const records of [{}, "x", [1], [null], [[]], [{}]]) {
      const answer = await me.call("POST", "/sync/push", { body: { records } });
      expectRefused(answer, 400, "VALIDATION_ERROR");
    }
    const many = Array.from({ length: 501 }, (_, i) => ({
      ...{ type: "note", entityId: `${i}`, version: "1", encryptedData: "x" },
    }));
    const answer = await me.call("POST", "/sync/push", { body: { records: many } });
    expectRefused(answer, 400, "VALIDATION_ERROR");
  });

  test("reports with a broken shape are 400", async () => {
    const me = (await newOwner(server)).as("a");
    await me.ok("POST", "/agents/register", { id: "a" });
    const broken = [
      ["complete", {}],
      ["complete", { leaseToken: 5 }],
      ["complete", { leaseToken: "x".repeat(129) }],
      ["fail", { leaseToken: "t", error: "text" }],
      ["fail", { leaseToken: "t", error: { code: "AGENT_LOST" } }],
      ["fail", { leaseToken: "t", error: { code: "no spaces" } }],
      ["fail", { leaseToken: "t", error: { message: "x".repeat(4097) } }],
      ["heartbeat", { leaseToken: "t", lease: 1 }],
      ["heartbeat", { leaseToken: "t", progress: "x".repeat(32769) }],
      ["release", { leaseToken: "" }],
    ] as const;
    for (const [verb, body] of broken) {
      const answer = await me.call("POST", `/tasks/none/${verb}`, { body });
      expectRefused(answer, 400, "VALIDATION_ERROR");
    }
  });
});

test("nothing of this was a fault of the server, and it goes on serving", async () => {
  expect(faultsOf(server)).toEqual([]);
  expect((await (await newOwner(server)).call("GET", "/workflows")).status).toBe(200);
});
