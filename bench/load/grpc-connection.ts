import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { frameHead, frameTypes, readFrames } from "./frames.ts";
import { type HeaderField, passing, postOverHttp, recalled, remembered } from "./hpack.ts";

/** What one call is told. A call that fails has no message: gRPC sends its status alone. */
export interface Listener {
  /** A message of the answer, encoded. */
  message(bytes: Buffer): void;
  /** The answer has ended; false when the peer broke it off. */
  end(isWhole: boolean): void;
}

const magic = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const windowStart = 65_535;
const windowBytes = 2 ** 30;
/** How much of the connection's window is used before more is granted. */
const windowStep = 2 ** 28;
const frameBytesMax = 16_384;
const envelopeBytes = 5;
const nothing = Buffer.alloc(0);
const flags = { ack: 0x1, endStream: 0x1, endHeaders: 0x4 } as const;
const settings = { initialWindowSize: 4 } as const;

/**
 * A gRPC client that costs so little that the server is the one that is measured: it writes frames
 * over a socket (RFC 9113) and looks at messages alone, never at headers or trailers. It speaks to
 * servers that neither pad frames nor compress messages, on h2c.
 */
export class GrpcConnection {
  readonly #socket: Socket;
  /** What each block of header fields begins with. */
  readonly #start: Buffer;
  readonly #recalled: Buffer;
  readonly #remembered: Buffer;
  readonly #streams = new Map<number, { readonly listener: Listener; rest: Buffer }>();
  /** Frames of data that wait for the peer's window, in their order. */
  readonly #waiting: { readonly id: number; readonly part: Buffer; readonly isLast: boolean }[] =
    [];
  #nextId = 1;
  #sendWindow = windowStart;
  #received = 0;
  #isCorked = false;
  #rest: Buffer = nothing;

  /** `fields` go with every call; the peer remembers them. */
  static async open(port: number, fields: readonly HeaderField[]): Promise<GrpcConnection> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new GrpcConnection(socket, `127.0.0.1:${port}`, [
      ["content-type", "application/grpc+proto"],
      ["te", "trailers"],
      ...fields,
    ]);
  }

  private constructor(socket: Socket, authority: string, fields: readonly HeaderField[]) {
    this.#socket = socket;
    this.#start = Buffer.concat([postOverHttp, passing([[":authority", authority]])]);
    this.#remembered = remembered(fields);
    this.#recalled = recalled(fields);
    const windows = Buffer.alloc(6);
    windows.writeUInt16BE(settings.initialWindowSize, 0);
    windows.writeUInt32BE(windowBytes, 2);
    socket.write(magic);
    this.#send(frameTypes.settings, { flags: 0, id: 0 }, windows);
    this.#grant(windowBytes);
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#fail());
  }

  /** One call. `block`: its header fields encoded by `passing`, `:path` first. */
  call(block: Buffer, message: Buffer, listener: Listener): void {
    const bytes = message.length + envelopeBytes;
    if (bytes > windowStart) throw new RangeError("a message must fit the first window");
    const id = this.#nextId;
    this.#nextId += 2;
    this.#streams.set(id, { listener, rest: nothing });
    const shared = id === 1 ? this.#remembered : this.#recalled;
    // Those whose names begin with a colon come before all others.
    const fields = Buffer.concat([this.#start, block, shared]);
    this.#send(frameTypes.headers, { flags: flags.endHeaders, id }, fields);
    const body = Buffer.allocUnsafe(bytes);
    body[0] = 0;
    body.writeUInt32BE(message.length, 1);
    message.copy(body, envelopeBytes);
    for (let at = 0; at < bytes; at += frameBytesMax) {
      this.#waiting.push({
        id,
        part: body.subarray(at, at + frameBytesMax),
        isLast: at + frameBytesMax >= bytes,
      });
    }
    this.#sendWaiting();
  }

  close(): void {
    this.#socket.destroy();
  }

  /** As much as the peer's window for the connection lets through. */
  #sendWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const { id, part, isLast } = next;
      if (part.length > this.#sendWindow) return;
      this.#waiting.shift();
      this.#sendWindow -= part.length;
      this.#send(frameTypes.data, { flags: isLast ? flags.endStream : 0, id }, part);
    }
  }

  /** All that one turn of the event loop sends goes out together. */
  #send(type: number, head: { readonly flags: number; readonly id: number }, body: Buffer): void {
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#socket.cork();
      setImmediate(() => {
        this.#isCorked = false;
        this.#socket.uncork();
      });
    }
    this.#socket.write(Buffer.concat([frameHead(body.length, type, head), body]));
  }

  #grant(bytes: number): void {
    const body = Buffer.alloc(4);
    body.writeUInt32BE(bytes);
    this.#send(frameTypes.windowUpdate, { flags: 0, id: 0 }, body);
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const rest = readFrames(bytes, (type, head, body) => this.#takeFrame(type, head, body));
    this.#rest = rest.length === 0 ? nothing : rest;
  }

  #takeFrame(
    type: number,
    head: { readonly flags: number; readonly id: number },
    body: Buffer,
  ): void {
    const { id } = head;
    if (type === frameTypes.data) this.#takeData(id, body);
    if (type === frameTypes.data || type === frameTypes.headers) {
      if ((head.flags & flags.endStream) !== 0) this.#end(id, true);
    } else if (type === frameTypes.rstStream) {
      this.#end(id, false);
    } else if (type === frameTypes.windowUpdate) {
      if (id !== 0) return;
      this.#sendWindow += body.readUInt32BE();
      this.#sendWaiting();
    } else if (type === frameTypes.settings || type === frameTypes.ping) {
      const isAsked = (head.flags & flags.ack) === 0;
      const answer = type === frameTypes.ping ? Buffer.from(body) : nothing;
      if (isAsked) this.#send(type, { flags: flags.ack, id: 0 }, answer);
    } else if (type === frameTypes.goAway) {
      this.#socket.end();
    }
  }

  #takeData(id: number, body: Buffer): void {
    this.#received += body.length;
    if (this.#received >= windowStep) {
      this.#grant(this.#received);
      this.#received = 0;
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    let rest = stream.rest.length === 0 ? body : Buffer.concat([stream.rest, body]);
    while (rest.length >= envelopeBytes) {
      const end = envelopeBytes + rest.readUInt32BE(1);
      if (rest.length < end) break;
      stream.listener.message(rest.subarray(envelopeBytes, end));
      rest = rest.subarray(end);
    }
    // An empty part of a chunk would keep the whole chunk.
    stream.rest = rest.length === 0 ? nothing : rest;
  }

  #end(id: number, isWhole: boolean): void {
    const stream = this.#streams.get(id);
    this.#streams.delete(id);
    stream?.listener.end(isWhole);
  }

  #fail(): void {
    for (const id of [...this.#streams.keys()]) this.#end(id, false);
  }
}
