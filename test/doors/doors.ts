import {
  create,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import {
  type CallOptions,
  Code,
  ConnectError,
  createClient,
  type Transport,
} from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.ts";
import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { SyncConflictSchema } from "../../gen/sealflow/v1/errors_pb.ts";
import { SyncService, type SyncUpdate, SyncUpdateSchema } from "../../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import { canonical, type Json, toRequest } from "./canonical.ts";
import { EventParser } from "./event-parser.ts";
import { type RestCall, type RpcName, restCalls } from "./rest-calls.ts";
import type { TestServer } from "./server.ts";

/** Where a server is. */
type Address = Pick<TestServer, "httpUrl" | "grpcUrl">;

/** What every door answers to the same question, in one canonical form. */
export type Reply =
  | { readonly ok: Json }
  | { readonly reason: string; readonly code: Code; readonly details: Json };

export interface Who {
  readonly token: string;
  readonly agentId: string;
}

/** One way into the server. Requests are written as REST bodies are: camelCase, words, seconds. */
export interface Door {
  readonly name: string;
  call(who: Who, rpc: RpcName, request?: Json, headers?: Record<string, string>): Promise<Reply>;
}

export const doorNames = ["grpc", "connect", "grpc-web", "rest"] as const;

export function openDoor(name: (typeof doorNames)[number], server: Address): Door {
  if (name === "rest") return restDoor(server);
  const transports: Record<Exclude<typeof name, "rest">, () => Transport> = {
    grpc: () => createGrpcTransport({ baseUrl: server.grpcUrl }),
    connect: () => createConnectTransport({ baseUrl: server.httpUrl, httpVersion: "1.1" }),
    "grpc-web": () => createGrpcWebTransport({ baseUrl: server.httpUrl, httpVersion: "1.1" }),
  };
  return rpcDoor(name, transports[name]());
}

export function rpcDoor(name: string, transport: Transport): Door {
  return {
    name,
    async call(who, rpc, request = {}, headers = {}) {
      if (rpc === "heartbeatTask") return oneHeartbeat(this, who, request);
      const { token, agentId } = who;
      const [service, method] = findMethod(rpc);
      const client = createClient(service, transport) as unknown as Record<
        string,
        (message: Message, options: CallOptions) => Promise<MessageShape<typeof method.output>>
      >;
      const message = create(method.input, toRequest(method.input, request) as never);
      const options = {
        headers: { authorization: `Bearer ${token}`, "x-agent-id": agentId, ...headers },
      };
      try {
        if (rpc === "subscribe") {
          const { subscribe } = createClient(SyncService, transport);
          return { ok: await untilUpToDate(shown(subscribe(message as never, options))) };
        }
        const answer = await client[rpc]?.(message, options);
        if (answer === undefined) throw new Error(`no ${rpc}`);
        return { ok: canonical(toJson(method.output, answer)) };
      } catch (cause) {
        if (cause instanceof ConnectError) return replyOf(cause);
        throw cause;
      }
    },
  };
}

async function* shown(updates: AsyncIterable<SyncUpdate>): AsyncGenerator<Json> {
  for await (const update of updates) yield canonical(toJson(SyncUpdateSchema, update));
}

/** What a stream says until it has said all that is there. */
async function untilUpToDate(updates: AsyncIterable<Json>): Promise<Json> {
  const said: Json[] = [];
  for await (const update of updates) {
    said.push(update);
    if (isMessage(update) && update["kind"] === "up_to_date") break;
  }
  return { updates: said };
}

function isMessage(value: Json): value is Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

async function* shownEvents(response: Response): AsyncGenerator<Json> {
  const parser = new EventParser();
  for await (const chunk of response.body ?? []) {
    for (const { data } of parser.feed(chunk)) yield canonical(JSON.parse(data));
  }
}

/** REST takes one task at a time, and says LEASE_LOST as an error. */
async function oneHeartbeat(door: Door, who: Who, request: Json): Promise<Reply> {
  const { wait = 0, ...task } = request as Record<string, Json>;
  const heartbeats = { tasks: [task], wait };
  const reply = await door.call(who, "heartbeatTasks" as RpcName, heartbeats);
  if (!("ok" in reply)) return reply;
  const [result] = (reply.ok as { results: Record<string, Json>[] }).results;
  const { taskId = "", status = "", leaseLeft = "" } = result ?? {};
  if (status === "TASK_HEARTBEAT_STATUS_LEASE_LOST") {
    return { reason: "LEASE_LOST", code: Code.Aborted, details: { taskId } };
  }
  const isCancel = status === "TASK_HEARTBEAT_STATUS_CANCEL_REQUESTED";
  return { ok: { ...(isCancel ? { cancelRequested: true } : {}), leaseLeft } };
}

const services: readonly DescService[] = [WorkflowService, AgentService, SyncService];

function findMethod(rpc: string): [DescService, DescMethodUnary] {
  for (const service of services) {
    const method = service.method[rpc];
    if (method !== undefined) return [service, method as DescMethodUnary];
  }
  throw new Error(`no rpc ${rpc}`);
}

/** An error of gRPC, gRPC-Web or Connect with all that its details say. */
export function replyOf(error: ConnectError): Reply {
  const [info] = error.findDetails(ErrorInfoSchema);
  const [bad] = error.findDetails(BadRequestSchema);
  const [conflict] = error.findDetails(SyncConflictSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const { reason: why, ...conflictRest } = (
    conflict === undefined ? {} : toJson(SyncConflictSchema, conflict)
  ) as Record<string, Json>;
  const details: Record<string, Json> = {
    ...info?.metadata,
    ...conflictRest,
    ...(why === undefined ? {} : { reason: why }),
    ...(bad === undefined ? {} : { fields: bad.fieldViolations.map(({ field }) => ({ field })) }),
    ...(retry === undefined ? {} : { hasRetry: true }),
  };
  return { reason: info?.reason ?? "", code: error.code, details: canonical(details) };
}

function restDoor(server: Address): Door {
  return {
    name: "rest",
    async call({ token, agentId }, rpc, request = {}, headers = {}) {
      const asked: RestCall = restCalls[rpc](request as never);
      const { verb, path, body } = asked;
      const response = await fetch(`${server.httpUrl}/api/v1${path}`, {
        method: verb,
        headers: {
          authorization: `Bearer ${token}`,
          "x-agent-id": agentId,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      if (isStream === true) return { ok: await untilUpToDate(shownEvents(response)) };
      const text = await response.text();
      const answer = text === "" ? {} : JSON.parse(text);
      if (response.ok) return { ok: canonical(answer) };
      return restReply(response, answer);
    },
  };
}

const codesByStatus: Readonly<Record<string, Code>> = {
  UNAUTHORIZED: Code.Unauthenticated,
  FORBIDDEN: Code.PermissionDenied,
  WORKFLOW_NOT_FOUND: Code.NotFound,
  AGENT_NOT_FOUND: Code.NotFound,
  EXECUTION_NOT_FOUND: Code.NotFound,
  TASK_NOT_FOUND: Code.NotFound,
  VALIDATION_ERROR: Code.InvalidArgument,
  PAYLOAD_TOO_LARGE: Code.ResourceExhausted,
  AGENT_ID_TAKEN: Code.AlreadyExists,
  IDEMPOTENCY_CONFLICT: Code.AlreadyExists,
  WORKFLOW_ACTIVE: Code.FailedPrecondition,
  LEASE_LOST: Code.Aborted,
  SYNC_CONFLICT: Code.Aborted,
  SYNC_CURSOR_AHEAD: Code.OutOfRange,
  TASK_TIMED_OUT: Code.DeadlineExceeded,
  RATE_LIMITED: Code.ResourceExhausted,
  QUEUE_FULL: Code.ResourceExhausted,
};

function restReply(
  response: Response,
  answer: { error: { code: string; details: Record<string, Json> } },
): Reply {
  const { code, details } = answer.error;
  const fields = details["fields"] as { field: string }[] | undefined;
  return {
    reason: code,
    code: codesByStatus[code] ?? Code.Unknown,
    details: canonical({
      ...details,
      ...(fields === undefined ? {} : { fields: fields.map(({ field }) => ({ field })) }),
      ...(response.headers.get("retry-after") === null ? {} : { hasRetry: true }),
    }),
  };
}
