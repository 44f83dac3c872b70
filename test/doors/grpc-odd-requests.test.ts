import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CreateWorkflowRequestSchema } from "../../gen/sealflow/v1/workflow_pb.ts";
import { type Answer, frame, type HandCaller, handCaller, type Sent } from "./grpc-by-hand.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// What a correct client never sends, to the lane of plain gRPC and to the Connect adapter side by
// side. They say the same, but where the table names why not.

let lane: TestServer;
let adapter: TestServer;
let toLane: HandCaller;
let toAdapter: HandCaller;
beforeAll(async () => {
  [lane, adapter] = await Promise.all([startTestServer(), startTestServer({ grpcLane: false })]);
  toLane = handCaller(lane, await lane.token({ sub: "me" }));
  toAdapter = handCaller(adapter, await adapter.token({ sub: "me" }));
});
afterAll(async () => {
  expect([...faultsOf(lane), ...faultsOf(adapter)]).toEqual([]);
  await Promise.all([lane, adapter].map((it) => it[Symbol.asyncDispose]()));
});

/** An answer in words: its code and reason; or the HTTP status that came alone, or the reset. */
type Words =
  | "OK"
  | `${string} ${string}`
  | `status ${number}`
  | `reset ${number}`
  /** Why the two differ, and how. */
  | { readonly why: string; readonly lane: Words; readonly adapter: Words };

type Case = readonly [name: string, sent: Sent, words: Words];

function inWords({ http, code, reason, reset }: Answer): Words {
  if (http === 0) return `reset ${reset}`;
  if (code === "") return `status ${http}`;
  return code === "OK" ? "OK" : `${code} ${reason}`;
}

function runs(cases: readonly Case[]): void {
  test.each(cases)("%s", async (_, sent, words) => {
    const [fast, plain] = await Promise.all([toLane.send(sent), toAdapter.send(sent)]);
    const expected = typeof words === "string" ? { lane: words, adapter: words } : words;
    expect({ lane: inWords(fast), adapter: inWords(plain) }).toEqual({
      lane: expected.lane,
      adapter: expected.adapter,
    });
    for (const { error } of [fast, plain]) {
      expect(error?.rawMessage ?? "").not.toMatch(/node_modules|\.ts\b|\bat .+:\d+/);
    }
  });
}

const MiB = 1024 * 1024;
const message = toBinary(
  CreateWorkflowRequestSchema,
  create(CreateWorkflowRequestSchema, { name: "w" }),
);
const ok = frame(message);
const empty = frame(new Uint8Array());
const list = "WorkflowService.ListWorkflows";
const subscribe = "SyncService.Subscribe";
/** Of the body of a call that is otherwise correct. */
const withHeaders = (headers: Sent["headers"]): Sent => ({ body: ok, ...(headers && { headers }) });
const ofType = (type: string | undefined) => withHeaders({ "content-type": type });

const invalid = "InvalidArgument VALIDATION_ERROR";
const notOne = "Unimplemented UNSUPPORTED_MEDIA_TYPE";
const tooLarge = "ResourceExhausted PAYLOAD_TOO_LARGE";
const unknown = "Unimplemented ROUTE_NOT_FOUND";
const anonymous = "Unauthenticated UNAUTHORIZED";
const late = "DeadlineExceeded DEADLINE_EXCEEDED";

describe("a type of content", () => {
  runs([
    ["application/grpc", ofType("application/grpc"), "OK"],
    ["application/grpc+proto", ofType("application/grpc+proto"), "OK"],
    ["in capitals", ofType("Application/GRPC"), "OK"],
    ["with a parameter", ofType("application/grpc; charset=utf-8"), "status 415"],
    ["of another codec", ofType("application/grpc+thrift"), "status 415"],
    ["that is none of gRPC", ofType("text/plain"), "status 415"],
    ["that is missing", ofType(undefined), "status 415"],
    [
      "JSON",
      {
        body: frame(Buffer.from('{"name":"w"}')),
        headers: { "content-type": "application/grpc+json" },
      },
      "OK",
    ],
    ["without te", withHeaders({ te: undefined }), "OK"],
  ]);
});

describe("compression", () => {
  const packed = frame(gzipSync(message), { flags: 1 });
  const by = (encoding: string, body: Buffer): Sent => ({
    body,
    headers: { "grpc-encoding": encoding },
  });
  const flagged = (bits: number): Sent => ({ body: frame(message, { flags: bits }) });
  runs([
    ["gzip", by("gzip", packed), "OK"],
    ["gzip, and a message without its flag", by("gzip", ok), "OK"],
    ["identity", by("identity", ok), "OK"],
    ["an encoding that is not known", by("snappy", packed), notOne],
    ["a flag, and no encoding", { body: packed }, invalid],
    ["a flag, and identity", by("identity", packed), invalid],
    ...[2, 128].map(
      (bits): Case => [
        `the flag ${bits}`,
        flagged(bits),
        { why: "the protocol has no flags but 0 and 1", lane: invalid, adapter: "OK" },
      ],
    ),
  ]);
});

describe("a body", () => {
  const cut = frame(message, { length: 100 });
  const claims = (length: number) => frame(new Uint8Array(), { length });
  const tooLargeLater = "a second message is one too many, whatever it is";
  runs([
    ["in one piece", { body: ok }, "OK"],
    ["byte by byte", { body: [...ok].map((byte) => Uint8Array.of(byte)) }, "OK"],
    ["with its head apart", { body: [ok.subarray(0, 5), ok.subarray(5)] }, "OK"],
    ["with nothing in between", { body: [ok.subarray(0, 2), Buffer.of(), ok.subarray(2)] }, "OK"],
    ["a message of no bytes", { path: list, body: empty }, "OK"],
    ["without a message", {}, notOne],
    ["without a message, on a stream", { path: subscribe }, notOne],
    ["with an empty frame of HTTP/2 only", { body: [new Uint8Array()] }, notOne],
    ["two messages", { body: [ok, ok] }, notOne],
    ["two messages in one piece", { body: Buffer.concat([ok, ok]) }, notOne],
    ["two messages, on a stream", { path: subscribe, body: [empty, empty] }, notOne],
    ["a message and a bit", { body: [ok, Buffer.of(0, 0, 0)] }, invalid],
    [
      "a message and a head",
      { body: [ok, claims(10)] },
      { why: "what is cut off must not be taken for whole", lane: notOne, adapter: "OK" },
    ],
    [
      "a message and the head of one too large",
      { body: [ok, claims(2 ** 31)] },
      { why: tooLargeLater, lane: notOne, adapter: tooLarge },
    ],
    ["that ends early", { body: cut }, invalid],
    ["half a head", { body: Buffer.of(0, 0) }, invalid],
    ["no protobuf", { body: frame(Buffer.from("this is no protobuf at all")) }, invalid],
    ["a group without end", { body: frame(Buffer.of(0x0b)) }, invalid],
    ["a string that is not UTF-8", { body: frame(Buffer.of(0x0a, 2, 0xff, 0xfe)) }, invalid],
    ["fields that nobody knows", { body: frame(Buffer.from([...message, 0xf8, 7, 1])) }, "OK"],
    ["of 4 MiB", { body: frame(new Uint8Array(4 * MiB)) }, invalid],
    ["of 4 MiB and a byte", { body: frame(new Uint8Array(4 * MiB + 1)) }, tooLarge],
    ["of 64 MiB", { body: frame(new Uint8Array(64 * MiB)) }, tooLarge],
    ["that claims 4 GiB, and stays open", { body: claims(2 ** 32 - 1), isOpen: true }, tooLarge],
    ["announced too short", withHeaders({ "content-length": "3" }), "reset 2"],
    ["announced", withHeaders({ "content-length": String(ok.length) }), "OK"],
  ]);
});

describe("who calls", () => {
  const nobody = { authorization: undefined };
  runs([
    ["nobody", withHeaders(nobody), anonymous],
    ["nobody, with 64 MiB", { headers: nobody, body: frame(new Uint8Array(64 * MiB)) }, anonymous],
    ["nobody, on an open stream", { headers: nobody, body: Buffer.of(0), isOpen: true }, anonymous],
    ["two agents", withHeaders({ "x-agent-id": ["a", "b"] }), anonymous],
    ["no agent", withHeaders({ "x-agent-id": undefined }), anonymous],
    ["an empty agent", withHeaders({ "x-agent-id": "" }), anonymous],
    ["metadata in bytes", withHeaders({ "x-trace-bin": "AAEC" }), "OK"],
    ["a key that is not ASCII", withHeaders({ "idempotency-key": "caf\u00e9" }), "OK"],
    ["12 KiB of metadata", withHeaders({ "x-large": "x".repeat(12 * 1024) }), "OK"],
    ["100 KiB of metadata", withHeaders({ "x-large": "x".repeat(100 * 1024) }), "reset 7"],
    [
      "200 entries of metadata",
      withHeaders(Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, "1"]))),
      "reset 11",
    ],
  ]);
});

describe("a time-out of", () => {
  const of = (timeout: string, more: Sent = { body: ok }): Sent => ({
    ...more,
    headers: { "grpc-timeout": timeout },
  });
  /** Waits 1 s: a timer that overflows would be over at once. */
  const wait = { path: "SyncService.PullState", body: frame(Buffer.of(0x42, 2, 8, 1)) };
  runs([
    ...["1H", "1M", "9S", "99999999m", "99999999u", "9S"].map((t): Case => [t, of(t), "OK"]),
    ...["99999999H", "99999999S"].map((t): Case => [`${t}, and a wait`, of(t, wait), "OK"]),
    ...["0S", "0n", "1n", "1u"].map((t): Case => [t, of(t), late]),
    ...["", "S", "1", "1s", "1X", "-1S", "+1S", "1.5S", "1 S", "100000000S"].map(
      (t): Case => [`'${t}'`, of(t), invalid],
    ),
    ["200m, and a body that is open", of("200m", { body: Buffer.of(0), isOpen: true }), late],
    ["300m, and a stream", of("300m", { path: subscribe, body: empty }), late],
    ["'x', of nobody", { ...of("x"), headers: { authorization: undefined } }, anonymous],
  ]);
});

describe("a path, a verb, a host", () => {
  const at = (path: string): Sent => ({ path, body: ok });
  const path = "/sealflow.v1.WorkflowService/CreateWorkflow";
  const from = (authority: string) => withHeaders({ ":authority": authority });
  runs([
    ["with a query", at(`${path}?x=1`), "OK"],
    ...[`${path}/`, path.toLowerCase(), `/${path}`, `/x/..${path}`, "/", "*", "/a.B/C"].map(
      (it): Case => [it, at(it.startsWith("/") ? it : `/${it}`), unknown],
    ),
    ["escaped", at("/sealflow.v1.WorkflowService/%43reateWorkflow"), unknown],
    ["not ASCII, which the message says back", at("/sealflow.v1.X/N%C3%B1%25"), unknown],
    ["PUT", withHeaders({ ":method": "PUT" }), "status 405"],
    ["post", withHeaders({ ":method": "post" }), "status 405"],
    ["with a port", from("[::1]:80"), "OK"],
    ["that is none", from("]["), "status 400"],
    ["of a socket", from("%2Ftmp%2Fsocket"), "status 400"],
    ["with somebody's name", from("me@host"), "reset 1"],
    [
      "with a port that is none",
      from("host:99999"),
      { why: "nobody asks for the port", lane: "OK", adapter: "status 400" },
    ],
    ["that asks first", withHeaders({ expect: "100-continue" }), "OK"],
    ["that expects the unexpected", withHeaders({ expect: "x" }), "status 417"],
  ]);
});

describe("an answer", () => {
  test("is headers, one message, trailers", async () => {
    for (const caller of [toLane, toAdapter]) {
      const answer = await caller.send({ body: ok });
      expect(answer.messages).toHaveLength(1);
      expect(answer.headers.get("content-type")).toBe("application/grpc+proto");
      expect(answer.isTrailersOnly).toBe(false);
    }
  });

  test("that refuses is trailers only; the adapter sends headers first", async () => {
    const refused = { body: empty };
    expect((await toLane.send(refused)).isTrailersOnly).toBe(true);
    expect((await toAdapter.send(refused)).isTrailersOnly).toBe(false);
  });

  test("is not compressed by the lane, however it may be", async () => {
    const data = { name: "w", encryptedData: "x".repeat(64 * 1024) };
    const body = frame(
      toBinary(CreateWorkflowRequestSchema, create(CreateWorkflowRequestSchema, data)),
    );
    const headers = { "grpc-accept-encoding": "gzip" };
    const [fast, plain] = await Promise.all([
      toLane.send({ body, headers }),
      toAdapter.send({ body, headers }),
    ]);
    expect(fast.headers.has("grpc-encoding")).toBe(false);
    expect(fast.messages[0]?.length).toBeGreaterThan(64 * 1024);
    expect(plain.headers.get("grpc-encoding")).toBe("gzip");
    expect(plain.messages[0]?.length).toBeLessThan(1024);
  });

  test("carries the details of its error without padding, and its limits", async () => {
    const limited = { ...Object.fromEntries(groups.map((group) => [group, null])), workflows: 1 };
    for (const grpcLane of [true, false]) {
      await using server = await startTestServer({ grpcLane, rateLimits: limited as never });
      const caller = handCaller(server, await server.token({ sub: "me" }));
      const first = await caller.send({ body: ok });
      expect(first.headers.get("x-ratelimit-remaining")).toBe("0");
      const second = await caller.send({ body: ok });
      expect(inWords(second)).toBe("ResourceExhausted RATE_LIMITED");
      expect(second.headers.get("x-ratelimit-limit")).toBe("1");
      const { metadata } = second.error ?? {};
      expect(metadata?.get("grpc-status-details-bin")).toMatch(/^[A-Za-z0-9+/]+$/);
      expect(metadata?.get("retry-after")).toMatch(/^\d+$/);
    }
  });
});

const groups = ["auth", "sync", "workflows", "agents", "executions", "tasks"];
