import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { type Reason, ServiceError } from "../domain/errors.ts";
import { requestTooLarge } from "./request-size.ts";
import { inSlices } from "./slices.ts";

type Body = AsyncIterable<Uint8Array>;

const detailsHeader = "grpc-status-details-bin";
const frameHeadBytes = 5;

/** An error that carries no reason, with its reason; undefined: it stays as it is. */
export type Mend = (error: ConnectError) => ConnectError | undefined;

/**
 * Errors that the adapter raises itself, before our chain sees the message (a body that is too
 * large or cannot be decoded, a bad time-out), carry no reason: gives them theirs, on each wire.
 */
export function withReasons(
  response: UniversalServerResponse,
  mend: Mend,
): UniversalServerResponse {
  const { body, trailer, header, status } = response;
  if (body === undefined || header === undefined) return response;
  if (trailer !== undefined) return { ...response, body: fixTrailer(body, trailer, mend) };
  const type = header.get("content-type") ?? "";
  if (type.startsWith("application/grpc-web")) return { ...response, body: fixFrames(body, mend) };
  // What is compressed is long, and what is long has its details.
  const isWhole = status === 200 || header.has("content-encoding");
  return isWhole ? response : { ...response, body: fixJson(body, header, mend) };
}

/** An answer whose long messages go out in slices; `onProgress` is called after each. */
export function sliced(
  response: UniversalServerResponse,
  onProgress: () => void,
): UniversalServerResponse {
  const { body } = response;
  return body === undefined ? response : { ...response, body: slicesOf(body, onProgress) };
}

async function* slicesOf(body: Body, onProgress: () => void): AsyncGenerator<Uint8Array> {
  for await (const bytes of body) {
    for (const slice of inSlices(bytes)) {
      yield slice;
      onProgress();
    }
  }
}

/** gRPC: the status stands in the trailer, once the body has ended. */
async function* fixTrailer(body: Body, trailer: Headers, mend: Mend): AsyncGenerator<Uint8Array> {
  yield* body;
  addReason(trailer, mend);
}

/** gRPC-Web: the trailer is the last frame of the body. */
async function* fixFrames(body: Body, mend: Mend): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    const isTrailer = chunk[0] === trailerFlag;
    yield isTrailer ? fixFrame(chunk, mend) : chunk;
  }
}

function fixFrame(frame: Uint8Array, mend: Mend): Uint8Array {
  const trailer = trailerParse(frame.subarray(frameHeadBytes));
  addReason(trailer, mend);
  const text = trailerSerialize(trailer);
  const fixed = new Uint8Array(frameHeadBytes + text.byteLength);
  fixed[0] = trailerFlag;
  new DataView(fixed.buffer).setUint32(1, text.byteLength);
  fixed.set(text, frameHeadBytes);
  return fixed;
}

/** Connect, unary: the body is the error. Its length is known before it is sent. */
async function* fixJson(body: Body, header: Headers, mend: Mend): AsyncGenerator<Uint8Array> {
  for await (const bytes of body) {
    const error = errorFromJsonBytes(bytes, undefined, new ConnectError("", Code.Unknown));
    const fixed = error.details.length > 0 ? undefined : mend(error);
    const answer = fixed === undefined ? bytes : errorToJsonBytes(fixed, undefined);
    header.set("content-length", String(answer.byteLength));
    yield answer;
  }
}

function addReason(trailer: Headers, mend: Mend): void {
  if (trailer.has(detailsHeader)) return;
  const error = findTrailerError(trailer);
  const fixed = error === undefined ? undefined : mend(error);
  if (fixed !== undefined) setTrailerStatus(trailer, fixed);
}

/** What the adapter found wrong with a request; undefined when it is nothing of that kind. */
export function requestFailure({ code, rawMessage }: ConnectError): ServiceError | undefined {
  if (code === Code.ResourceExhausted) return requestTooLarge();
  const reason = reasonsOfCodes.get(code);
  return reason === undefined ? undefined : new ServiceError(reason, rawMessage);
}

/** A message that cannot be decoded is INTERNAL to the adapter; to us it is the caller's fault. */
const reasonsOfCodes: ReadonlyMap<Code, Reason> = new Map<Code, Reason>([
  [Code.InvalidArgument, "VALIDATION_ERROR"],
  [Code.Internal, "VALIDATION_ERROR"],
  [Code.Unimplemented, "UNSUPPORTED_MEDIA_TYPE"],
  [Code.DeadlineExceeded, "DEADLINE_EXCEEDED"],
  [Code.Canceled, "CANCELLED"],
]);
