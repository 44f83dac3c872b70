const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * An id that sorts by the time it was made, e.g. `wf_01k9…`: 48 bits of milliseconds and 80 random
 * ones in Crockford's base 32, like a ULID. Rows that are made together lie together.
 */
export function newId(prefix: string, nowUs: number, random: Uint8Array): string {
  let id = "";
  let ms = Math.floor(nowUs / 1000);
  for (let i = 0; i < 10; i += 1) {
    id = `${alphabet[ms % 32] ?? ""}${id}`;
    ms = Math.floor(ms / 32);
  }
  for (const byte of random.subarray(0, 16)) id += alphabet[byte % 32] ?? "";
  return `${prefix}_${id}`;
}
