import { randomUUID } from "node:crypto";
import { type Client, type ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { expect } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import type { TestServer } from "./server.ts";

/** Where a server is. */
export type Address = Pick<TestServer, "httpUrl" | "grpcUrl">;

// biome-ignore lint/suspicious/noExplicitAny: a test reads answers of every shape.
export type Body = any;

/** An answer of REST, read to its end. */
export interface RestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined when there is none. */
  readonly body: Body;
}

export interface RestOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, as JSON unless a header says otherwise. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
}

/** Who calls REST. */
export interface RestCaller {
  readonly token: string;
  readonly agentId: string;
  /** Another agent of the same owner. */
  as(agentId: string): RestCaller;
  call(verb: string, path: string, options?: RestOptions): Promise<RestAnswer>;
  /** The body of a call that must succeed. */
  ok(verb: string, path: string, body?: unknown): Promise<Body>;
  /** The error of a call that must fail for this reason. */
  refused(reason: string, verb: string, path: string, body?: unknown): Promise<Body>;
}

/** A caller of an owner that no other test has. */
export async function newOwner(
  server: Address & Pick<TestServer, "token">,
  agentId = "laptop",
): Promise<RestCaller> {
  return restCaller(server, { token: await server.token({ sub: randomUUID() }), agentId });
}

export function restCaller(
  server: Address,
  { token, agentId }: { readonly token: string; readonly agentId: string },
): RestCaller {
  const identity = { authorization: `Bearer ${token}`, "x-agent-id": agentId };
  const call: RestCaller["call"] = (verb, path, { headers, ...rest } = {}) =>
    restCall(server, `${verb} ${path}`, { ...rest, headers: { ...identity, ...headers } });
  return {
    token,
    agentId,
    as: (other) => restCaller(server, { token, agentId: other }),
    call,
    async ok(verb, path, body) {
      const answer = await call(verb, path, body === undefined ? {} : { body });
      if (answer.status < 300) return answer.body;
      throw new Error(`${verb} ${path}: ${answer.status} ${answer.text}`);
    },
    async refused(reason, verb, path, body) {
      const answer = await call(verb, path, body === undefined ? {} : { body });
      expect(answer.body?.error?.code ?? `${answer.status} ${answer.text}`).toBe(reason);
      return answer.body.error;
    },
  };
}

/** One call with nothing but what is given. `at`: verb and path below `/api/v1`. */
export async function restCall(
  server: Address,
  at: string,
  { body, raw, headers = {} }: RestOptions = {},
): Promise<RestAnswer> {
  const [method = "", path] = at.split(" ");
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(`${server.httpUrl}/api/v1${path}`, {
    method,
    headers: { ...(sent === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(sent === undefined ? {} : { body: sent }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: readJson(text) };
}

function readJson(text: string): Body {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The three services as a typed client sees them. */
export interface RpcCaller {
  readonly workflows: Client<typeof WorkflowService>;
  readonly agents: Client<typeof AgentService>;
  readonly sync: Client<typeof SyncService>;
}

export const wires = ["grpc", "connect", "grpc-web"] as const;
export type Wire = (typeof wires)[number];

export function rpcCaller(
  server: Address,
  { token, agentId }: { readonly token: string; readonly agentId: string },
  wire: Wire = "grpc",
): RpcCaller {
  const transport = openTransport(server, wire, {
    authorization: `Bearer ${token}`,
    "x-agent-id": agentId,
  });
  return {
    workflows: createClient(WorkflowService, transport),
    agents: createClient(AgentService, transport),
    sync: createClient(SyncService, transport),
  };
}

/** A transport that sends these headers with every call. */
export function openTransport(
  server: Address,
  wire: Wire,
  headers: Record<string, string>,
): Transport {
  const options = {
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
        return next(request);
      },
    ],
  } satisfies Pick<Parameters<typeof createGrpcTransport>[0], "interceptors">;
  const http = { ...options, baseUrl: server.httpUrl, httpVersion: "1.1" } as const;
  if (wire === "connect") return createConnectTransport(http);
  if (wire === "grpc-web") return createGrpcWebTransport(http);
  return createGrpcTransport({ ...options, baseUrl: server.grpcUrl });
}

/** The reason that an error of any wire carries. */
export function reasonOf(error: ConnectError): string {
  return error.findDetails(ErrorInfoSchema)[0]?.reason ?? "";
}

/** The error of a call that must fail. */
export async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => {
      throw new Error("it was accepted");
    },
    (error: ConnectError) => error,
  );
}

/** Every refusal has the shape of the interface and says nothing of our insides. */
export function expectRefused(answer: RestAnswer, status: number, code: string): void {
  expect([answer.status, answer.body?.error?.code]).toEqual([status, code]);
  expect(Object.keys(answer.body)).toEqual(["success", "error"]);
  expect(Object.keys(answer.body.error)).toEqual(["code", "message", "details"]);
  expect(answer.body.success).toBe(false);
  expect(answer.text).not.toMatch(/node:|node_modules|\.ts\b|\bat .+:\d+|SQLITE/);
}

export const agentHeaders = (token: string, agentId = "laptop") => ({
  authorization: `Bearer ${token}`,
  "x-agent-id": agentId,
});
