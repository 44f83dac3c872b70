import { type ClientHttp2Session, connect } from "node:http2";
import { setTimeout as pause } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CreateWorkflowRequestSchema } from "../../gen/sealflow/v1/workflow_pb.ts";
import { failureOf, newOwner, type RestCaller, reasonOf, rpcCaller } from "./callers.ts";
import { frame } from "./grpc-by-hand.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";

// gRPC by hand: what a correct client never sends.

let server: TestServer;
let me: RestCaller;
let session: ClientHttp2Session;
beforeAll(async () => {
  server = await startTestServer();
  me = await newOwner(server);
  session = connect(server.grpcUrl);
});
afterEach(async () => {
  await rpcCaller(server, me).workflows.listWorkflows({});
});
afterAll(async () => {
  session.destroy();
  expect(faultsOf(server)).toEqual([]);
  await server[Symbol.asyncDispose]();
});

const MiB = 1024 * 1024;
const createPath = "/sealflow.v1.WorkflowService/CreateWorkflow";

interface Sent {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly method?: string;
  /** Sent as it is. */
  readonly body?: Uint8Array;
}

/** Sends a request by hand; the status of HTTP and the error that the trailer holds. */
async function send({ path = createPath, headers, method = "POST", body }: Sent) {
  const own = connect(server.grpcUrl, { maxSessionMemory: 64 });
  own.on("error", () => {});
  const stream = own.request({
    ...{ ":method": method, ":path": path, te: "trailers" },
    ...{ "content-type": "application/grpc", authorization: `Bearer ${me.token}` },
    ...{ "x-agent-id": "laptop", ...headers },
  });
  const answer = { status: 0, trailer: new Headers() };
  const read = (fields: object) => {
    for (const [name, value] of Object.entries(fields)) {
      if (!name.startsWith(":")) answer.trailer.set(name, String(value));
    }
  };
  stream.on("response", (fields) => {
    answer.status = Number(fields[":status"]);
    read(fields);
  });
  stream.on("trailers", read);
  stream.on("error", () => {});
  stream.end(body);
  stream.resume();
  await new Promise((resolve) => stream.once("close", resolve));
  own.destroy();
  const error: ConnectError | undefined = findTrailerError(answer.trailer);
  return { status: answer.status, code: error?.code, reason: error && reasonOf(error), error };
}

const message = (name: string) =>
  toBinary(CreateWorkflowRequestSchema, create(CreateWorkflowRequestSchema, { name }));

describe("bytes that are no message", () => {
  const invalidUtf8 = Uint8Array.of(0x0a, 0x02, 0xff, 0xfe);
  const surrogate = Uint8Array.of(0x0a, 0x03, 0xed, 0xa0, 0x80);
  test.each<[string, Uint8Array]>([
    ["garbage in a frame", frame(Buffer.from("this is no protobuf at all"))],
    ["a frame that ends early", frame(message("w"), { length: 100 })],
    ["half a head", Uint8Array.of(0, 0, 0)],
    ["a string that is not UTF-8", frame(invalidUtf8)],
    ["a lone surrogate", frame(surrogate)],
    ["a field that ends early", frame(Uint8Array.of(0x0a, 0x7f, 0x41))],
    ["a group without end", frame(Uint8Array.of(0x0b))],
    ["a varint without end", frame(new Uint8Array(20).fill(0xff))],
    ["compressed, but not so", frame(message("w"), { flags: 1 })],
  ])("%s is INVALID_ARGUMENT", async (_, body) => {
    const { status, code, reason, error } = await send({ body });
    expect(status).toBe(200);
    expect([code && Code[code], reason]).toEqual(["InvalidArgument", "VALIDATION_ERROR"]);
    expect(error?.rawMessage).not.toMatch(/node_modules|\.ts\b|\bat .+:\d+/);
  });

  test("NUL, and a lone surrogate inside JSON text", async () => {
    const { workflows, agents } = rpcCaller(server, me);
    const nul = await failureOf(workflows.createWorkflow({ name: "a\0b" }));
    expect([nul.code, reasonOf(nul)]).toEqual([Code.InvalidArgument, "VALIDATION_ERROR"]);
    await agents.registerAgent({ id: "a" });
    for (const input of ['"\\ud800"', '{"\\u0000":1}', "{", "NaN", "[".repeat(200_000)]) {
      const failure = await failureOf(agents.executeAgent({ id: "a", input }));
      expect([failure.code, reasonOf(failure)]).toEqual([Code.InvalidArgument, "VALIDATION_ERROR"]);
    }
  });

  test("a gzip bomb is RESOURCE_EXHAUSTED", async () => {
    const { gzipSync } = await import("node:zlib");
    const bomb = frame(gzipSync(Buffer.alloc(64 * MiB)), { flags: 1 });
    const { code, reason } = await send({ body: bomb, headers: { "grpc-encoding": "gzip" } });
    expect([code, reason]).toEqual([Code.ResourceExhausted, "PAYLOAD_TOO_LARGE"]);
  });
});

describe("a message that is too large", () => {
  test("is RESOURCE_EXHAUSTED with its own reason, announced or not", async () => {
    const large = frame(new Uint8Array(5 * MiB));
    for (const headers of [{}, { "content-length": String(large.length) }]) {
      const { code, reason } = await send({ body: large, headers });
      expect([code, reason]).toEqual([Code.ResourceExhausted, "PAYLOAD_TOO_LARGE"]);
    }
    const claimed = await send({ body: frame(new Uint8Array(), { length: 2 ** 32 - 1 }) });
    expect([claimed.code, claimed.reason]).toEqual([Code.ResourceExhausted, "PAYLOAD_TOO_LARGE"]);
  });

  test.each(["grpc", "connect", "grpc-web"] as const)("over %s", async (wire) => {
    const { workflows } = rpcCaller(server, me, wire);
    const encryptedData = "x".repeat(5 * MiB);
    const failure = await failureOf(workflows.createWorkflow({ name: "w", encryptedData }));
    expect([failure.code, reasonOf(failure)]).toEqual([
      Code.ResourceExhausted,
      "PAYLOAD_TOO_LARGE",
    ]);
  });
});

describe("calls that are none", () => {
  test.each(["/sealflow.v1.WorkflowService/Nothing", "/other.Service/Get", "/", "/x"])(
    "%s is UNIMPLEMENTED",
    async (path) => {
      const { status, code, reason } = await send({ path, body: frame(message("w")) });
      expect(status).toBe(200);
      expect([code, reason]).toEqual([Code.Unimplemented, "ROUTE_NOT_FOUND"]);
    },
  );

  test.each(["text/plain", "application/x-protobuf", "application/grpc+unknown"])(
    "the type %s is refused by status",
    async (type) => {
      const { status } = await send({ headers: { "content-type": type }, body: message("w") });
      expect(status).toBe(415);
    },
  );

  test("an authority that is none is refused by status", async () => {
    expect((await send({ headers: { ":authority": "][" } })).status).toBe(400);
  });

  test("another verb is refused by status", async () => {
    expect((await send({ method: "GET" })).status).toBe(405);
  });

  test("an encoding that is not known, and other than one message, are UNIMPLEMENTED", async () => {
    const zip = { "grpc-encoding": "zip" };
    for (const asked of [
      { body: frame(message("w"), { flags: 1 }), headers: zip },
      { body: new Uint8Array() },
      { body: Buffer.concat([frame(message("a")), frame(message("b"))]) },
    ]) {
      const { code, reason } = await send(asked);
      expect([code, reason]).toEqual([Code.Unimplemented, "UNSUPPORTED_MEDIA_TYPE"]);
    }
  });

  test.each(["x", "-1S", "1", "99999999999S", "1X"])("a time-out of %s is refused", async (t) => {
    const headers = { "grpc-timeout": t };
    const { code, reason } = await send({ headers, body: frame(message("w")) });
    expect([code, reason]).toEqual([Code.InvalidArgument, "VALIDATION_ERROR"]);
  });
});

describe("a client that leaves", () => {
  test("in the middle of a message", async () => {
    for (const code of [0, 1, 8]) {
      const stream = session.request({
        ...{ ":method": "POST", ":path": createPath, "content-type": "application/grpc" },
        ...{ authorization: `Bearer ${me.token}`, "x-agent-id": "laptop", te: "trailers" },
      });
      stream.on("error", () => {});
      stream.write(frame(message("w"), { length: 1000 }));
      await pause(30);
      stream.close(code);
    }
    await pause(50);
  });

  test("with its whole connection", async () => {
    const other = connect(server.grpcUrl);
    other.on("error", () => {});
    const stream = other.request({
      ...{ ":method": "POST", ":path": "/sealflow.v1.AgentService/PollTasks", te: "trailers" },
      ...{ "content-type": "application/grpc", authorization: `Bearer ${me.token}` },
      "x-agent-id": "laptop",
    });
    stream.on("error", () => {});
    stream.end(frame(new Uint8Array()));
    await pause(50);
    other.destroy();
    await pause(50);
  });

  test("after bytes that are no HTTP/2", async () => {
    const { connect: connectSocket } = await import("node:net");
    const { hostname, port } = new URL(server.grpcUrl);
    for (const text of ["GET / HTTP/1.1\r\nhost: x\r\n\r\n", "\x16\x03\x01garbage", "PRI * HTTP"]) {
      const socket = connectSocket(Number(port), hostname);
      socket.on("error", () => {});
      socket.write(text);
      await pause(30);
      socket.destroy();
    }
  });
});
