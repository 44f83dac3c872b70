/**
 * Why something could not be sealed or opened.
 *
 * - `BAD_KEY`: a key is 32 bytes, as bytes or as base64url
 * - `BAD_PAYLOAD`: not a value of JSON, or not the one that was sealed
 * - `NOT_SEALED`: the text is not a compact JWE
 * - `UNSUPPORTED`: another algorithm than A256KW with A256GCM, compressed, or an unknown `crit`
 * - `CANNOT_OPEN`: sealed with another key, or changed since
 * - `NOT_BOUND`: a record's seal must name its record, and this one does not
 * - `WRONG_RECORD`: sealed for another record, or another version or deletion of it
 */
export type SealErrorCode =
  | "BAD_KEY"
  | "BAD_PAYLOAD"
  | "NOT_SEALED"
  | "UNSUPPORTED"
  | "CANNOT_OPEN"
  | "NOT_BOUND"
  | "WRONG_RECORD";

/** The only error of sealing and opening. Tell them apart by `code`. */
export class SealError extends Error {
  readonly code: SealErrorCode;

  constructor(code: SealErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "SealError";
    this.code = code;
  }
}
