/** A header field as HTTP/2 carries it: the name in lower case. */
export type HeaderField = readonly [name: string, value: string];

/** Entries of the static table that each call names whole (RFC 7541 appendix A). */
export const postOverHttp = Buffer.from([0x83, 0x86]);

const staticEntries = 61;
/** An index above this needs a second byte. */
const oneByteMax = 126;
const tableBytesMax = 4096;
const entryOverhead = 32;

/** Fields that the peer is to remember: the first block that is sent on a connection. */
export function remembered(fields: readonly HeaderField[]): Buffer {
  return Buffer.concat(fields.map((field) => literal(0x40, field)));
}

/**
 * The same fields, once they are remembered and nothing else is: one byte each. Throws RangeError
 * when they do not fit the peer's table.
 */
export function recalled(fields: readonly HeaderField[]): Buffer {
  const bytes = fields.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  const first = staticEntries + fields.length;
  if (bytes + fields.length * entryOverhead > tableBytesMax || first > oneByteMax) {
    throw new RangeError("too many header fields to remember");
  }
  return Buffer.from(fields.map((_, i) => 0x80 | (first - i)));
}

/** Fields that the peer is not to remember. */
export function passing(fields: readonly HeaderField[]): Buffer {
  return Buffer.concat(fields.map((field) => literal(0x00, field)));
}

/** A literal with a new name, not compressed (RFC 7541 section 6.2). */
function literal(kind: number, [name, value]: HeaderField): Buffer {
  return Buffer.concat([Buffer.from([kind]), text(name), text(value)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  return Buffer.concat([lengthBytes(bytes.length), bytes]);
}

/** An integer of a 7-bit prefix (RFC 7541 section 5.1). */
function lengthBytes(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}
