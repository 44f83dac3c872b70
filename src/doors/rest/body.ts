import type { IncomingMessage, ServerResponse } from "node:http";
import { invalid, ServiceError } from "../../domain/errors.ts";
import { parseJson } from "../../domain/json-text.ts";
import { limits } from "../../domain/limits.ts";
import { requestTooLarge } from "../request-size.ts";
import { bodyOf } from "../unread.ts";
import { isObject } from "./fields.ts";

/**
 * Reads a JSON body; none is `{}`. Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE (while it
 * arrives), VALIDATION_ERROR. Its object has no prototype's names: what is not sent is undefined.
 */
export async function readJsonBody(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await readBytes(request, response);
  if (bytes.length === 0) return {};
  if (!isJson(request.headers["content-type"])) {
    throw new ServiceError("UNSUPPORTED_MEDIA_TYPE", "Send Content-Type: application/json");
  }
  const body = parse(bytes);
  if (!isObject(body)) throw invalid("body", "must be a JSON object");
  return Object.assign(Object.create(null), body);
}

/** The body as it is, at most so many bytes. */
export async function readBytes(
  request: IncomingMessage,
  response: ServerResponse,
  bytesMax: number = limits.requestBytesMax,
): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw requestTooLarge(bytesMax);
  // Who asked first, with `Expect: 100-continue`, sends nothing before this.
  if (request.headers.expect !== undefined) response.writeContinue();
  const chunks = await collect(request, bytesMax).catch((cause: unknown) => {
    throw cause instanceof ServiceError ? cause : callerLeft(cause);
  });
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
}

async function collect(request: IncomingMessage, bytesMax: number): Promise<readonly Buffer[]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of bodyOf(request)) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw requestTooLarge(bytesMax);
    chunks.push(chunk);
  }
  return chunks;
}

/** All that can go wrong with a body that is read: its connection ended. */
function callerLeft(cause: unknown): ServiceError {
  return new ServiceError("CANCELLED", "The caller has left", { cause });
}

function isJson(type: string | undefined): boolean {
  const [essence = ""] = (type ?? "").split(";", 1);
  return essence.trim().toLowerCase() === "application/json";
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parse(bytes: Buffer): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw invalid("body", "must be UTF-8");
  }
  try {
    return parseJson(text);
  } catch {
    throw invalid("body", "must be JSON");
  }
}
