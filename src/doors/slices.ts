/** So much is handed to the wire at once. */
const sliceBytes = 64 * 1024;

/** Bytes in slices, so that the reader of a long message is seen to read. */
export function* inSlices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += sliceBytes) {
    yield bytes.subarray(at, at + sliceBytes);
  }
}
