import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { Answer, Chain } from "../../calls/chain.ts";
import { doorError, type FaultLog, slowConsumer } from "../../calls/journey.ts";
import type { WireCall } from "../../calls/wire-call.ts";
import { ServiceError } from "../../domain/errors.ts";
import { limits, spans } from "../../domain/limits.ts";
import type { AddressOf } from "../address.ts";
import { requestTooLarge } from "../request-size.ts";
import { inSlices } from "../slices.ts";
import { FrameReader, frameHeadBytes, frameOf } from "./frame.ts";
import { okStatus, statusOf } from "./status.ts";
import { grpcTimeoutMs } from "./timeout.ts";

export interface LaneParts {
  readonly chain: Chain;
  readonly addressOf: AddressOf;
  readonly faults: FaultLog;
}

interface LaneRequest {
  readonly method: DescMethod;
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
}

/** Of the messages of streams, by the message. */
const sharedFrames = new WeakMap<Answer["message"], Buffer>();

/** A call of plain gRPC, from its first frame to its last. */
export class LaneCall implements WireCall {
  readonly method: DescMethod;
  readonly door = "grpc";
  readonly deadlineMs: number | undefined;
  readonly #parts: LaneParts;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #isTimeoutBad: boolean;
  readonly #answerHeaders: Record<string, string | number> = {
    ":status": 200,
    "content-type": "application/grpc+proto",
  };
  #trailer = okStatus;
  #isAnswered = false;
  #hasLeft = false;
  #tellLeft: (() => void) | undefined;
  #tellFree: (() => void) | undefined;
  #tellProgress: () => void = ignore;
  #leaving: AbortController | undefined;
  #deadlineTimer: NodeJS.Timeout | undefined;

  constructor(parts: LaneParts, { method, stream, headers }: LaneRequest) {
    this.#parts = parts;
    this.method = method;
    this.#stream = stream;
    this.#headers = headers;
    const timeout = this.metadata("grpc-timeout");
    const timeoutMs = timeout === undefined ? undefined : grpcTimeoutMs(timeout);
    this.#isTimeoutBad = Number.isNaN(timeoutMs);
    if (timeoutMs !== undefined && !this.#isTimeoutBad) {
      this.deadlineMs = performance.now() + timeoutMs;
    }
    // Whoever resets a stream has left; the close tells.
    stream.on("error", ignore);
    stream.on("close", () => this.#close());
    stream.on("wantTrailers", () => stream.sendTrailers(this.#trailer));
  }

  get address(): string {
    const { session } = this.#stream;
    return session === undefined
      ? ""
      : this.#parts.addressOf({ socket: session.socket, headers: this.#headers });
  }

  /** Made when it is asked for: most calls are over before anyone could leave. */
  get signal(): AbortSignal {
    if (this.#leaving !== undefined) return this.#leaving.signal;
    const leaving = new AbortController();
    this.#leaving = leaving;
    if (this.#hasLeft) leaving.abort();
    else if (this.deadlineMs !== undefined) {
      const leftMs = Math.max(0, this.deadlineMs - performance.now());
      this.#deadlineTimer = setTimeout(() => leaving.abort(), Math.min(leftMs, 2 ** 31 - 1));
    }
    return leaving.signal;
  }

  onLeft(tell: () => void): void {
    if (this.#hasLeft) tell();
    else this.#tellLeft = tell;
  }

  metadata(name: string): string | undefined {
    const value = this.#headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  answerHeader(name: string, value: string): void {
    this.#answerHeaders[name] = value;
  }

  /** To a client this code is RESOURCE_EXHAUSTED: a trailer would wait behind what it leaves. */
  drop(): void {
    this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  onProgress(tell: () => void): void {
    this.#tellProgress = tell;
  }

  async readMessage(): Promise<Message> {
    if (this.#isTimeoutBad) throw badTimeout();
    const length = Number(this.metadata("content-length") ?? 0);
    if (length > limits.requestBytesMax + frameHeadBytes) throw requestTooLarge();
    const bytes = await readFrame(this.#stream);
    try {
      return fromBinary(this.method.input, bytes);
    } catch {
      const message = `The message is no ${this.method.input.typeName}`;
      throw new ServiceError("VALIDATION_ERROR", message);
    }
  }

  /** Ends what could not even be refused. */
  abandon(cause: unknown): void {
    doorError(this.#parts.faults, this.door, cause);
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }

  async unary(): Promise<void> {
    try {
      const { message } = await this.#parts.chain.unary(this);
      const frame = this.#encode(message);
      if (this.#stream.closed) return;
      this.#begin();
      this.#end(frame);
    } catch (cause) {
      this.#fail(cause);
    }
  }

  async stream(): Promise<void> {
    try {
      for await (const burst of await this.#parts.chain.stream(this)) {
        const frames = burst.map((message) => this.#encodeShared(message));
        // (The chain sees for itself that nobody is there any more.)
        if (this.#stream.closed) continue;
        this.#begin();
        await this.#write(joined(frames));
      }
      if (this.#stream.closed) return;
      this.#begin();
      this.#end();
    } catch (cause) {
      this.#fail(cause);
    }
  }

  /** Resolves when there is room again, or nobody reads any more. */
  async #write(frames: Buffer): Promise<void> {
    for (const slice of inSlices(frames)) {
      if (this.#stream.closed) return;
      if (!this.#stream.write(slice)) await this.#whenFree();
      this.#tellProgress();
    }
  }

  #encode(message: Answer["message"]): Buffer {
    const { output } = this.method;
    return frameOf(toBinary(output, create(output, message)));
  }

  /** A message that goes out on many streams is encoded once. */
  #encodeShared(message: Answer["message"]): Buffer {
    const known = sharedFrames.get(message);
    if (known !== undefined) return known;
    const frame = this.#encode(message);
    sharedFrames.set(message, frame);
    return frame;
  }

  #begin(): void {
    if (this.#stream.headersSent) return;
    this.#stream.respond(this.#answerHeaders, { waitForTrailers: true });
  }

  #end(frame?: Buffer): void {
    this.#isAnswered = true;
    this.#stream.setTimeout(spans.streamStallMs, () => this.#letGo());
    if (frame === undefined) this.#stream.end();
    else this.#stream.end(frame);
  }

  /** In the trailers, or in the headers (Trailers-Only) when nothing was sent yet. */
  #fail(cause: unknown): void {
    if (this.#stream.closed) return;
    const isRefusal = cause instanceof ServiceError;
    const error = isRefusal ? cause : doorError(this.#parts.faults, this.door, cause);
    const status = statusOf(error);
    if (this.#stream.headersSent) {
      this.#trailer = status;
      this.#end();
      return;
    }
    this.#isAnswered = true;
    const headers = { ...this.#answerHeaders, ...status };
    this.#stream.respond(headers, { endStream: true });
    if (this.#stream.readableEnded) return;
    // Whoever still sends is told to stop (RFC 9113 section 8.1). What has come is dropped: a stream
    // that holds unread bytes would never leave its connection.
    this.#stream.close(constants.NGHTTP2_NO_ERROR);
    this.#stream.resume();
  }

  /** Its reader takes nothing of what is left, for as long as no stream may stand still. */
  #letGo(): void {
    doorError(this.#parts.faults, this.door, slowConsumer());
    this.drop();
  }

  async #whenFree(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#tellFree = resolve;
    this.#stream.once("drain", resolve);
    await promise;
    this.#stream.off("drain", resolve);
  }

  #close(): void {
    clearTimeout(this.#deadlineTimer);
    this.#tellFree?.();
    if (this.#isAnswered) return;
    this.#hasLeft = true;
    this.#tellLeft?.();
    this.#leaving?.abort();
  }
}

/** Begins to take the body in: until then it waits with its sender. */
function readFrame(stream: ServerHttp2Stream): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const frame = new FrameReader();
    const onChunk = (chunk: Buffer) => {
      try {
        frame.push(chunk);
      } catch (cause) {
        stream.off("data", onChunk);
        reject(cause);
      }
    };
    const onEnd = () => {
      // A stream that was reset ends too, but not what it carried.
      if (stream.closed) return;
      try {
        resolve(frame.end());
      } catch (cause) {
        reject(cause);
      }
    };
    // Without a byte it may have ended before anyone asked.
    if (stream.readableEnded) onEnd();
    else stream.on("data", onChunk).once("end", onEnd);
  });
}

function badTimeout(): ServiceError {
  const message = "grpc-timeout must be up to eight digits and one of H, M, S, m, u, n";
  return new ServiceError("VALIDATION_ERROR", message);
}

function ignore(): void {}

/** A lone frame as it is: it may be large, and many streams' own. */
function joined(frames: readonly Buffer[]): Buffer {
  const [first] = frames;
  return first !== undefined && frames.length === 1 ? first : Buffer.concat(frames);
}
