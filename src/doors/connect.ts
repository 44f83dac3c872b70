import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Answer, Chain } from "../calls/chain.ts";
import { toConnectError } from "../calls/connect-error.ts";
import { doorError, type FaultLog } from "../calls/journey.ts";
import type { WireCall } from "../calls/wire-call.ts";
import { ServiceError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { requestFailure, sliced, withReasons } from "./connect-wire.ts";
import { dropEndlessTimeout } from "./grpc/timeout.ts";
import { requestTooLarge } from "./request-size.ts";
import { bodyOf, dropUnread } from "./unread.ts";

type NodeRequest = IncomingMessage | Http2ServerRequest;
type NodeResponse = ServerResponse | Http2ServerResponse;

export interface ConnectDoorParts {
  readonly chain: Chain;
  readonly services: readonly DescService[];
  addressOf(request: NodeRequest): string;
  readonly faults: FaultLog;
}

/** Serves a request when its path is an rpc; tells whether it was. */
export type ConnectDoor = (request: NodeRequest, response: NodeResponse) => boolean;

const callKey = createContextKey<ConnectCall | undefined>(undefined);
const peerKey = createContextKey<Peer | undefined>(undefined);

/** The wire below a call. */
interface Peer {
  readonly address: string;
  /** Tells who asked first, with `Expect: 100-continue`, to send the body. */
  invite(): void;
  /** Ends the reading of the body: the call was refused while it was under way. */
  refuse(error: ConnectError): void;
  drop(): void;
  /** To be called when the reader has taken more of a stream. */
  progressed: () => void;
}

/** gRPC, gRPC-Web and Connect through the Connect adapter: its gate runs before it reads a body. */
export function createConnectDoor(parts: ConnectDoorParts): ConnectDoor {
  const { chain, services, addressOf } = parts;
  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    readMaxBytes: limits.requestBytesMax,
    requestGate: (context) => {
      const call = new ConnectCall(context);
      context.values.set(callKey, call);
      return call.begin(chain);
    },
  });
  for (const { methods } of services) for (const method of methods) serve(router, method);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?", 1);
    const handle = handlers.get(path);
    if (handle === undefined) return false;
    const values = createContextValues();
    const drop = () => dropAnswer(response);
    const invite = () => {
      if (request.headers.expect !== undefined) response.writeContinue();
    };
    const { promise: refused, reject: refuse } = Promise.withResolvers<never>();
    refused.catch(() => {});
    const peer: Peer = { address: addressOf(request), invite, refuse, drop, progressed: () => {} };
    values.set(peerKey, peer);
    const asked = toUniversal(request, response, values);
    if (asked === undefined) return true;
    const mend = (error: ConnectError) => mendError(parts.faults, values.get(callKey), error);
    handle({ ...asked, body: untilRefused(asked.body, refused) })
      .then((answer) => {
        const whole = withReasons(answer, mend);
        const isUnary = handle.method.methodKind === "unary";
        const sent = isUnary ? whole : sliced(whole, () => peer.progressed());
        return universalResponseToNodeResponse(sent, response);
      })
      // What is left to fail here is the wire itself: the caller has gone.
      .catch(drop);
    return true;
  };
}

/** What the adapter could not read is the caller's fault; what it could not write is ours. */
function mendError(
  faults: FaultLog,
  call: ConnectCall | undefined,
  error: ConnectError,
): ConnectError | undefined {
  const isOurs = call?.hasMessage === true && error.code === Code.Internal;
  const failure = isOurs ? doorError(faults, call.door, error) : requestFailure(error);
  return failure && toConnectError(failure);
}

/** A body whose reading ends when the call is refused, whatever its caller still sends. */
async function* untilRefused(
  body: UniversalServerRequest["body"],
  refused: Promise<never>,
): AsyncGenerator<Uint8Array> {
  if (typeof body !== "object" || body === null || !(Symbol.asyncIterator in body)) return;
  const chunks = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([chunks.next(), refused]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited: what never arrives would hold the answer.
    chunks.return?.().catch(() => {});
  }
}

/** Undefined, and answered, when it is no request: then its host is none. */
function toUniversal(
  request: NodeRequest,
  response: NodeResponse,
  values: ContextValues,
): UniversalServerRequest | undefined {
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    dropEndlessTimeout(universal.header);
    if ("stream" in request) {
      closeUnread(request);
      return universal;
    }
    dropUnread(request, response);
    return { ...universal, body: bodyOf(request) };
  } catch {
    response.statusCode = 400;
    response.end();
    return undefined;
  }
}

/** To a client of gRPC the code is RESOURCE_EXHAUSTED. */
function dropAnswer(response: NodeResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  else response.destroy();
}

/** One method on the router: it hands the body to the call that the gate began. */
function serve(router: ConnectRouter, method: DescMethod): void {
  const desc = method as DescMethod & { methodKind: "unary" };
  const implementation = (message: Message, context: HandlerContext) => {
    const call = context.values.get(callKey);
    if (call === undefined) throw new ConnectError("no gate", Code.Internal);
    return call.answer(message);
  };
  router.rpc(desc as never, implementation as never);
}

class ConnectCall implements WireCall {
  readonly method: DescMethod;
  readonly door: string;
  readonly address: string;
  readonly deadlineMs: number | undefined;
  readonly #context: HandlerContext;
  readonly #body = Promise.withResolvers<Message>();
  readonly #wantsBody = Promise.withResolvers<void>();
  /** Whether the body was read and decoded. */
  hasMessage = false;
  #answer: Promise<Answer> | undefined;
  #stream: ReturnType<Chain["stream"]> | undefined;

  constructor(context: HandlerContext) {
    this.#context = context;
    this.method = context.method;
    this.door = context.protocolName;
    this.address = context.values.get(peerKey)?.address ?? "";
    const leftMs = context.timeoutMs();
    this.deadlineMs = leftMs === undefined ? undefined : performance.now() + leftMs;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  /** What the adapter gave up for, while it read. */
  get failure(): ServiceError | undefined {
    const cause: unknown = this.signal.reason;
    return !this.hasMessage && cause instanceof ConnectError ? requestFailure(cause) : undefined;
  }

  metadata(name: string): string | undefined {
    return this.#context.requestHeader.get(name) ?? undefined;
  }

  answerHeader(name: string, value: string): void {
    this.#context.responseHeader.set(name, value);
  }

  drop(): void {
    this.#context.values.get(peerKey)?.drop();
  }

  onProgress(tell: () => void): void {
    const peer = this.#context.values.get(peerKey);
    if (peer !== undefined) peer.progressed = tell;
  }

  readMessage(): Promise<Message> {
    const length = Number(this.metadata("content-length") ?? 0);
    if (length > limits.requestBytesMax + envelopeBytes) throw requestTooLarge();
    this.#context.values.get(peerKey)?.invite();
    this.#wantsBody.resolve();
    return this.#body.promise;
  }

  /** Runs the chain as far as it goes without the body; rejects when it refuses the call. */
  async begin(chain: Chain): Promise<void> {
    const isUnary = this.method.methodKind === "unary";
    if (isUnary) this.#answer = chain.unary(this);
    else this.#stream = chain.stream(this);
    const work: Promise<unknown> | undefined = this.#answer ?? this.#stream;
    // Refused while the body is under way, it rejects where the adapter reads.
    work?.catch((cause: unknown) => {
      if (!this.hasMessage && cause instanceof ServiceError) {
        this.#context.values.get(peerKey)?.refuse(toConnectError(cause));
      }
    });
    await Promise.race([this.#wantsBody.promise, work]).catch(raise);
  }

  answer(message: Message): Promise<Message> | AsyncIterable<Message> {
    this.hasMessage = true;
    this.#body.resolve(message);
    if (this.#answer !== undefined) return this.#unary(this.#answer);
    if (this.#stream !== undefined) return this.#streaming(this.#stream);
    throw new ConnectError("the chain was not begun", Code.Internal);
  }

  async #unary(answer: Promise<Answer>): Promise<Message> {
    const { message } = await answer.catch(raise);
    return message as Message;
  }

  async *#streaming(stream: ReturnType<Chain["stream"]>): AsyncGenerator<Message> {
    try {
      for await (const burst of await stream) yield* burst as readonly Message[];
    } catch (cause) {
      raise(cause);
    }
  }
}

/** What a gRPC message weighs beside its bytes. */
const envelopeBytes = 5;

function raise(cause: unknown): never {
  throw cause instanceof ServiceError ? toConnectError(cause) : cause;
}

/** Answered is answered: whoever still sends over HTTP/2 is told to stop. */
function closeUnread({ stream }: Http2ServerRequest): void {
  // The last that is sent are the trailers; the response tells only once the stream is closed.
  stream.once("wantTrailers", () => {
    if (stream.readableEnded) return;
    setImmediate(() => {
      stream.close();
      // A stream that holds unread bytes would never leave its connection.
      stream.removeAllListeners("data").resume();
    });
  });
}
