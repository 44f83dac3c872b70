/** Frames of HTTP/2 (RFC 9113 section 4). */

export const frameTypes = {
  data: 0x0,
  headers: 0x1,
  rstStream: 0x3,
  settings: 0x4,
  ping: 0x6,
  goAway: 0x7,
  windowUpdate: 0x8,
} as const;

export interface FrameHead {
  readonly flags: number;
  /** Of the stream; 0 is the connection. */
  readonly id: number;
}

const headBytes = 9;

export function frameHead(length: number, type: number, { flags, id }: FrameHead): Buffer {
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUIntBE(length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return head;
}

/** Hands on each whole frame, and answers the bytes that are left. */
export function readFrames(
  bytes: Buffer,
  take: (type: number, head: FrameHead, body: Buffer) => void,
): Buffer {
  let at = 0;
  while (bytes.length - at >= headBytes) {
    const length = bytes.readUIntBE(at, 3);
    const end = at + headBytes + length;
    if (bytes.length < end) break;
    const head = { flags: bytes[at + 4] ?? 0, id: bytes.readUInt32BE(at + 5) & 0x7fffffff };
    take(bytes[at + 3] ?? 0, head, bytes.subarray(at + headBytes, end));
    at = end;
  }
  return bytes.subarray(at);
}
