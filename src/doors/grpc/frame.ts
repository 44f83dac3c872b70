import { ServiceError } from "../../domain/errors.ts";
import { limits } from "../../domain/limits.ts";
import { requestTooLarge } from "../request-size.ts";

// Length-Prefixed-Message of gRPC over HTTP/2 (PROTOCOL-HTTP2.md): one byte of flags, the length of
// the message in four bytes, the message.
export const frameHeadBytes = 5;

/** A message as it is sent, not compressed. */
export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(frameHeadBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, frameHeadBytes);
  return frame;
}

/**
 * The one message of a request, from chunks that are cut anywhere. Throws PAYLOAD_TOO_LARGE as soon
 * as the head says so, UNSUPPORTED_MEDIA_TYPE for none or more than one, VALIDATION_ERROR for what
 * is no frame.
 */
export class FrameReader {
  #bytes: Buffer = Buffer.alloc(0);
  #size = 0;
  /** Of the whole frame, once its head is here. */
  #frameBytes: number | undefined;

  push(chunk: Buffer): void {
    this.#append(chunk);
    if (this.#size < frameHeadBytes) return;
    this.#frameBytes ??= frameHeadBytes + lengthOf(this.#bytes);
    if (this.#size >= this.#frameBytes + frameHeadBytes) throw notOne("more than one");
  }

  /** The message, once all has come. */
  end(): Uint8Array {
    if (this.#size === 0) throw notOne("none");
    if (this.#size !== this.#frameBytes) throw broken("The last frame is cut off");
    return this.#bytes.subarray(frameHeadBytes, this.#size);
  }

  /** Copies nothing while there is one chunk, and each byte about once when there are many. */
  #append(chunk: Buffer): void {
    const size = this.#size + chunk.length;
    if (this.#size === 0) this.#bytes = chunk;
    else if (size > this.#bytes.length) {
      const doubled = Math.min(2 * this.#bytes.length, this.#frameBytes ?? 0);
      const grown = Buffer.allocUnsafe(Math.max(size, doubled));
      this.#bytes.copy(grown, 0, 0, this.#size);
      chunk.copy(grown, this.#size);
      this.#bytes = grown;
    } else chunk.copy(this.#bytes, this.#size);
    this.#size = size;
  }
}

function lengthOf(head: Buffer): number {
  const length = head.readUInt32BE(1);
  if (length > limits.requestBytesMax) throw requestTooLarge();
  if (head[0] === 0) return length;
  throw broken(
    head[0] === 1
      ? "The message is said to be compressed, but grpc-encoding does not say how"
      : "The flags of a frame are 0 or 1",
  );
}

function notOne(count: string): ServiceError {
  return new ServiceError("UNSUPPORTED_MEDIA_TYPE", `An rpc takes one message, not ${count}`);
}

function broken(message: string): ServiceError {
  return new ServiceError("VALIDATION_ERROR", message);
}
