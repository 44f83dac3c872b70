import {
  CompactEncrypt,
  type CompactJWEHeaderParameters,
  compactDecrypt,
  decodeProtectedHeader,
  errors,
} from "jose";
import { SealError } from "./seal-error.ts";
import { keyBytes, keyId, type SealingKey } from "./sealing-key.ts";

export { SealError, type SealErrorCode } from "./seal-error.ts";
export { isKey, keyId, newKey, type SealingKey } from "./sealing-key.ts";

/** The record that a sealed state belongs to. It opens as that state of that record only. */
export interface RecordBinding {
  readonly type: string;
  readonly entityId: string;
  readonly version: string;
  /** A sealed proof of deletion. Default false. */
  readonly deleted?: boolean;
}

const algorithms = { alg: "A256KW", enc: "A256GCM" } as const;
const bytesContentType = "octet-stream";

/**
 * Encrypts a value of JSON, or bytes, as a compact JWE (RFC 7516): a new content key each time,
 * AES-256-GCM, wrapped with AES key wrap (RFC 3394), so that one key may seal without limit.
 * With `binding`, the protected header names the record, and no other opens it.
 * @throws SealError BAD_KEY, BAD_PAYLOAD
 */
export async function seal(
  payload: unknown,
  key: SealingKey,
  binding?: RecordBinding,
): Promise<string> {
  const isBytes = payload instanceof Uint8Array;
  const header: CompactJWEHeaderParameters = {
    ...algorithms,
    kid: await keyId(key),
    ...(isBytes ? { cty: bytesContentType } : {}),
    ...(binding === undefined ? {} : boundHeader(binding)),
  };
  return new CompactEncrypt(isBytes ? payload : jsonBytes(payload))
    .setProtectedHeader(header)
    .encrypt(keyBytes(key), { crit: { sync: true } });
}

/**
 * Opens what `seal` made: the value of JSON, or a Uint8Array if bytes were sealed. What is bound to
 * a record opens only with that record as `expected`, and what is not bound only without.
 * @throws SealError any code
 */
export async function unseal(
  jwe: string,
  key: SealingKey,
  expected?: RecordBinding,
): Promise<unknown> {
  const header = readHeader(jwe);
  checkAlgorithms(header);
  checkBinding(header, expected);
  const plaintext = await decrypt(jwe, keyBytes(key));
  return header.cty === bytesContentType ? plaintext : parseJson(plaintext);
}

/**
 * Encrypts the state of a record for a push as `encryptedData`. For a tombstone (`deleted: true`)
 * it is the proof that a device with the key meant the deletion; the payload may be null.
 * @throws SealError BAD_KEY, BAD_PAYLOAD
 */
export function sealRecord(
  record: RecordBinding,
  payload: unknown,
  key: SealingKey,
): Promise<string> {
  return seal(payload, key, record);
}

/**
 * Opens the state of a record as it came from the service, and refuses one that was sealed for
 * another type, entity, version or deletion: a server cannot pass one off as another. A tombstone
 * without proof of deletion is NOT_SEALED.
 * @throws SealError any code
 */
export function unsealRecord(
  record: RecordBinding & { readonly encryptedData: string },
  key: SealingKey,
): Promise<unknown> {
  return unseal(record.encryptedData, key, record);
}

const compactForm = /^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]*\.[\w-]+$/;

/** Whether a text is a compact JWE: five parts of base64url, the first a header of one. */
export function isSealed(text: string): boolean {
  return parseHeader(text) !== undefined;
}

type Header = Readonly<Record<string, unknown>>;

function readHeader(jwe: string): Header {
  const header = parseHeader(jwe);
  if (header === undefined) throw new SealError("NOT_SEALED", "This is not a compact JWE");
  return header;
}

function parseHeader(text: string): Header | undefined {
  if (!compactForm.test(text)) return undefined;
  try {
    const header: Header = { ...decodeProtectedHeader(text) };
    const isJwe = typeof header.alg === "string" && typeof header.enc === "string";
    return isJwe ? header : undefined;
  } catch {
    return undefined;
  }
}

function checkAlgorithms(header: Header): void {
  if (header.alg !== algorithms.alg || header.enc !== algorithms.enc) {
    throw new SealError("UNSUPPORTED", "Only A256KW with A256GCM is opened");
  }
  if (header.zip !== undefined) {
    throw new SealError("UNSUPPORTED", "Compressed content is not opened: its length tells of it");
  }
}

function boundHeader({ type, entityId, version, deleted }: RecordBinding) {
  return {
    typ: "sync+jwe",
    // A decoder that does not know `sync` must fail rather than skip the check (RFC 7516, 4.1.13).
    crit: ["sync"],
    sync: { t: type, id: entityId, v: version, ...(deleted === true ? { del: true } : {}) },
  };
}

function checkBinding(header: Header, expected: RecordBinding | undefined): void {
  const { crit, sync } = header;
  if (expected === undefined) {
    if (crit === undefined && sync === undefined) return;
    throw new SealError("WRONG_RECORD", "This is the state of a record: open it with its record");
  }
  if (!Array.isArray(crit) || crit.length !== 1 || crit[0] !== "sync" || !isObject(sync)) {
    throw new SealError("NOT_BOUND", "The sealed state does not name its record");
  }
  const isSame =
    sync.t === expected.type &&
    sync.id === expected.entityId &&
    sync.v === expected.version &&
    (sync.del ?? false) === (expected.deleted ?? false);
  if (!isSame) throw new SealError("WRONG_RECORD", "This was sealed for another record");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

async function decrypt(jwe: string, key: Uint8Array): Promise<Uint8Array> {
  try {
    const { plaintext } = await compactDecrypt(jwe, key, {
      keyManagementAlgorithms: [algorithms.alg],
      contentEncryptionAlgorithms: [algorithms.enc],
      crit: { sync: true },
    });
    return plaintext;
  } catch (error) {
    if (error instanceof errors.JOSENotSupported || error instanceof errors.JOSEAlgNotAllowed) {
      throw new SealError("UNSUPPORTED", "The header asks for what is not supported", error);
    }
    throw new SealError("CANNOT_OPEN", "Sealed with another key, or changed since", error);
  }
}

function jsonBytes(payload: unknown): Uint8Array {
  const text = jsonText(payload);
  if (text === undefined) throw new SealError("BAD_PAYLOAD", "The payload is not a value of JSON");
  return new TextEncoder().encode(text);
}

/** Absent for what JSON has no value for: undefined, functions, bigints, cycles. */
function jsonText(payload: unknown): string | undefined {
  try {
    return JSON.stringify(payload);
  } catch {
    return undefined;
  }
}

function parseJson(plaintext: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(plaintext));
  } catch {
    // Without the cause: the parser's words quote the plaintext.
    throw new SealError("BAD_PAYLOAD", "What was sealed is neither JSON nor marked as bytes");
  }
}
