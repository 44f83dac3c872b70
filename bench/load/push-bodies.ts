import { create, toBinary } from "@bufbuild/protobuf";
import {
  PushRecordSchema,
  PushStateRequestSchema,
  PushStatus,
} from "../../gen/sealflow/v1/record_pb.ts";
import { payload } from "../servers/fill.ts";

/** Bodies of PushState that are all new: each with records that no other one has. */
export interface PushBodies {
  /** The next body; its keys come after those of the one before. */
  next(): Buffer;
  /** Whether an answer says that every record was made. */
  isAllCreated(answer: Buffer): boolean;
}

const digits = 12;
const blank = `note-${"0".repeat(digits)}`;
/** Tags of PushStateResponse and of its results: `status`, `results`. */
const statusTag = 0x08;
const resultsTag = 0x1a;

/**
 * Encodes one body and then only writes keys into copies of it: that costs the generator less than
 * a call costs any server. `records`: how many in a push; 1 is a push without a list.
 */
export function pushBodies(records: number): PushBodies {
  const message = template(records);
  const places = [...positions(message, Buffer.from(blank))].map((at) => at + "note-".length);
  let count = 0;
  return {
    next() {
      const body = Buffer.from(message);
      for (const place of places) {
        count += 1;
        body.write(count.toString().padStart(digits, "0"), place, "latin1");
      }
      return body;
    },
    isAllCreated: records === 1 ? isCreated : (answer) => createdCount(answer) === records,
  };
}

function template(records: number): Buffer {
  const record = { type: "note", entityId: blank, version: "1.0.0", encryptedData: payload };
  const request =
    records === 1
      ? record
      : { records: Array.from({ length: records }, () => create(PushRecordSchema, record)) };
  return Buffer.from(toBinary(PushStateRequestSchema, create(PushStateRequestSchema, request)));
}

function* positions(bytes: Buffer, part: Buffer): Generator<number> {
  for (let at = bytes.indexOf(part); at >= 0; at = bytes.indexOf(part, at + 1)) yield at;
}

/** Looks at the first field alone, the status: decoding would cost more than encoding does. */
function isCreated(message: Buffer): boolean {
  return message[0] === statusTag && message[1] === PushStatus.CREATED;
}

function createdCount(answer: Buffer): number {
  let count = 0;
  for (let at = 0; answer[at] === resultsTag; ) {
    const [length, start] = readLength(answer, at + 1);
    if (isCreated(answer.subarray(start, start + length))) count += 1;
    at = start + length;
  }
  return count;
}

/** A varint, and where it ends. */
function readLength(bytes: Buffer, at: number): [length: number, end: number] {
  const byte = bytes[at] ?? 0;
  if (byte < 0x80) return [byte, at + 1];
  const [rest, end] = readLength(bytes, at + 1);
  return [(byte & 0x7f) + rest * 0x80, end];
}
