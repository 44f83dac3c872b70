import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from "node:http2";
import { setTimeout as pause } from "node:timers/promises";
import { Code, type ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { reasonOf } from "./callers.ts";
import type { TestServer } from "./server.ts";

// gRPC by hand: what a correct client never sends, and each frame that comes back.

/** A gRPC frame: flags, the length it claims, bytes. */
export function frame(bytes: Uint8Array, { flags = 0, length = bytes.length } = {}): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

export interface Sent {
  /** `Service.Rpc` of the contract, or a whole path. */
  readonly path?: string;
  /** Over those of a correct call; undefined leaves one out. */
  readonly headers?: OutgoingHttpHeaders;
  /** Sent as it is: each chunk a DATA frame of its own, if it is small enough. */
  readonly body?: Uint8Array | readonly Uint8Array[];
  /** Does not end the request. */
  readonly isOpen?: boolean;
}

/** What came back. */
export interface Answer {
  /** The status of HTTP; 0 when no headers came. */
  readonly http: number;
  readonly headers: Headers;
  /** The messages, without their heads. */
  readonly messages: readonly Buffer[];
  /** `OK`, a code's name, or empty when there was no status. */
  readonly code: string;
  readonly reason: string;
  readonly error: ConnectError | undefined;
  /** Whether the status came in the only HEADERS frame. */
  readonly isTrailersOnly: boolean;
  /** The code of HTTP/2 that the stream ended with. */
  readonly reset: number;
}

/** Calls as one caller, on a connection of each call's own. */
export interface HandCaller {
  send(sent: Sent): Promise<Answer>;
  /** A stream, to be read and ended by hand. */
  open(sent: Sent): ClientHttp2Stream;
}

export function handCaller(server: Pick<TestServer, "grpcUrl">, token: string): HandCaller {
  const connected = () => connect(server.grpcUrl, { maxSessionMemory: 256 }).on("error", () => {});
  const begin = (session: ClientHttp2Session, { path = createPath, headers, ...sent }: Sent) => {
    const stream = session.request(
      Object.fromEntries(
        Object.entries({
          ...{ ":method": "POST", ":path": pathOf(path), te: "trailers" },
          ...{ "content-type": "application/grpc", authorization: `Bearer ${token}` },
          ...{ "x-agent-id": "laptop", ...headers },
        }).filter(([, value]) => value !== undefined),
      ),
    );
    stream.on("error", () => {});
    for (const chunk of [sent.body ?? []].flat()) stream.write(chunk);
    if (sent.isOpen !== true) stream.end();
    return stream;
  };
  return {
    async send(sent) {
      const session = connected();
      const answer = await read(begin(session, sent));
      session.destroy();
      return answer;
    },
    open(sent) {
      const session = connected();
      return begin(session, sent).once("close", () => session.destroy());
    },
  };
}

const createPath = "WorkflowService.CreateWorkflow";

function pathOf(path: string): string {
  const [service, rpc] = path.startsWith("/") ? [] : path.split(".");
  return rpc === undefined ? path : `/sealflow.v1.${service}/${rpc}`;
}

/** Reads a stream to its end. */
export async function read(stream: ClientHttp2Stream): Promise<Answer> {
  const answer = { http: 0, headers: new Headers(), trailers: new Headers(), blocks: 0 };
  const take = (fields: object, target: Headers) => {
    answer.blocks += 1;
    for (const [name, value] of Object.entries(fields)) {
      if (!name.startsWith(":")) target.set(name, String(value));
    }
  };
  stream.on("response", (fields) => {
    answer.http = Number(fields[":status"]);
    take(fields, answer.headers);
  });
  stream.on("trailers", (fields) => take(fields, answer.trailers));
  const chunks: Buffer[] = [];
  stream.on("data", (chunk) => chunks.push(chunk));
  // (An answer may end, and its request not: who goes on sending is not waited for.)
  const closed = new Promise((resolve) => stream.once("close", resolve));
  await Promise.race([
    closed,
    new Promise((resolve) => stream.once("end", resolve)).then(() => pause(500)),
  ]);
  const isTrailersOnly = answer.headers.has("grpc-status");
  const status = isTrailersOnly ? answer.headers : answer.trailers;
  const error = findTrailerError(status);
  const code = error === undefined ? "OK" : (Code[error.code] ?? "");
  return {
    http: answer.http,
    headers: answer.headers,
    messages: split(Buffer.concat(chunks)),
    code: status.has("grpc-status") ? code : "",
    reason: error === undefined ? "" : reasonOf(error),
    error,
    isTrailersOnly: isTrailersOnly && answer.blocks === 1,
    reset: stream.rstCode ?? 0,
  };
}

function split(bytes: Buffer): Buffer[] {
  if (bytes.length < 5) return [];
  const end = 5 + bytes.readUInt32BE(1);
  return [bytes.subarray(5, end), ...split(bytes.subarray(end))];
}
