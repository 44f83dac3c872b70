import { connect } from "node:net";
import type { TestServer } from "./server.ts";

// HTTP/2 by its bytes (RFC 9113), for frames that no client of it would send.

export const types = {
  ...{ data: 0, headers: 1, priority: 2, reset: 3, settings: 4, pushPromise: 5, ping: 6 },
  ...{ goAway: 7, windowUpdate: 8, continuation: 9 },
} as const;
export const flags = { none: 0, endStream: 1, ack: 1, endHeaders: 4, padded: 8 } as const;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A bare connection to the gRPC port, that has said hello. */
export interface RawHttp2 extends Disposable {
  send(frame: Partial<Frame>): void;
  sendBytes(bytes: Uint8Array): void;
  /** Every frame that came so far. */
  readonly frames: readonly Frame[];
  /** In how many pieces the last that came has come. */
  readonly pieces: number;
  /** Resolves with the first frame like this that has come, or comes. */
  until(match: (frame: Frame) => boolean): Promise<Frame>;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const headBytes = 9;

/** `settings`: pairs of identifier and value. */
export function openRawHttp2(
  server: TestServer,
  settings: readonly (readonly [number, number])[] = [],
): RawHttp2 {
  const { hostname, port } = new URL(server.grpcUrl);
  const socket = connect(Number(port), hostname);
  const frames: Frame[] = [];
  const watchers = new Set<() => void>();
  const wake = () => {
    for (const watcher of watchers) watcher();
  };
  let rest: Buffer = Buffer.alloc(0);
  let pieces = 0;
  let isOver = false;
  socket.on("data", (chunk) => {
    pieces += 1;
    rest = takeFrames(Buffer.concat([rest, chunk]), frames);
    wake();
  });
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  void closed.then(() => {
    isOver = true;
    wake();
  });
  const send = (frame: Partial<Frame>) => void socket.write(bytesOf(frame));
  socket.write(preface);
  send({ type: types.settings, payload: Buffer.concat(settings.map(settingOf)) });
  return {
    send,
    sendBytes: (bytes) => void socket.write(bytes),
    frames,
    get pieces() {
      return pieces;
    },
    until: (match) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = frames.find(match);
          if (found === undefined && !isOver) return;
          watchers.delete(look);
          if (found !== undefined) resolve(found);
          else reject(new Error(`closed after ${frames.map(({ type }) => type)}`));
        };
        watchers.add(look);
        look();
      }),
    closed,
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

function takeFrames(bytes: Buffer, frames: Frame[]): Buffer {
  let rest = bytes;
  while (rest.length >= headBytes) {
    const end = headBytes + rest.readUIntBE(0, 3);
    if (rest.length < end) break;
    const [type = 0, flagBits = 0] = rest.subarray(3, 5);
    const stream = rest.readUInt32BE(5) & 0x7fffffff;
    frames.push({ type, flags: flagBits, stream, payload: rest.subarray(headBytes, end) });
    rest = rest.subarray(end);
  }
  return rest;
}

function bytesOf({
  type = types.data,
  flags: flagBits = flags.none,
  stream = 0,
  payload = Buffer.alloc(0),
}: Partial<Frame>): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flagBits, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function settingOf([id, value]: readonly [number, number]): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

/** How much more may be sent, on a stream. */
export function windowOf(stream: number, bytes: number): Partial<Frame> {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return { type: types.windowUpdate, stream, payload };
}

/** Whether a frame is the last that a stream says. */
export function isEndOf(stream: number): (frame: Frame) => boolean {
  return (frame) =>
    frame.stream === stream &&
    frame.type === types.headers &&
    (frame.flags & flags.endStream) !== 0;
}

/** Begins a request of gRPC. `headers`: over those of a correct call. */
export function askByHand(
  wire: RawHttp2,
  stream: number,
  headers: Readonly<Record<string, string>>,
): void {
  const payload = headerBlock({
    // (Those with a colon come first.)
    ...{ ":method": "POST", ":scheme": "http", ":path": "/", ":authority": "localhost" },
    ...{ te: "trailers", "content-type": "application/grpc", "x-agent-id": "laptop" },
    ...headers,
  });
  wire.send({ type: types.headers, flags: flags.endHeaders, stream, payload });
}

/** A block of headers as literals without index (RFC 7541 section 6.2.2). */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const literals = Object.entries(headers).map(([name, value]) =>
    Buffer.concat([Buffer.of(0), text(name), text(value)]),
  );
  return Buffer.concat(literals);
}

/** Without Huffman code; its length is an integer of seven bits and more (section 5.1). */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  const length = [];
  let left = bytes.length - 127;
  if (left < 0) length.push(bytes.length);
  else {
    length.push(127);
    for (; left >= 128; left >>= 7) length.push((left & 127) | 128);
    length.push(left);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}
