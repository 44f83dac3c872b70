import { crc32 } from "node:zlib";
import type { StoredChange, StoredState } from "./replica-storage.ts";

/** The first line of a journal. */
export const journalHeader = "sealflow replica 1\n";
const newline = 0x0a;
const itemsPerLine = 100;

/** One change as a line: its checksum, a blank, its JSON. */
export function journalLine(change: StoredChange): Buffer {
  const json = JSON.stringify(change);
  return Buffer.from(`${checksum(Buffer.from(json))} ${json}\n`);
}

/** A journal that says the same in as few lines as are handy. */
export function* journalOf({ position, records, pushes }: StoredState): Generator<Buffer> {
  yield Buffer.from(journalHeader);
  for (const part of partsOf(records)) yield journalLine({ records: part });
  for (const part of partsOf(pushes)) yield journalLine({ pushes: part });
  yield journalLine({ position });
}

function* partsOf<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += itemsPerLine) yield items.slice(at, at + itemsPerLine);
}

/** What could be read of a journal. */
export interface ReadJournal {
  /** How many bytes are whole: what follows was being written when the writer crashed. */
  readonly wholeBytes: number;
  /** Why it cannot be the journal of a replica that crashed, if so. */
  readonly damage: string | undefined;
}

/**
 * Hands each change to `apply`, in order. Only the last line can be broken by a crash: a broken one
 * before it is damage.
 */
export function readJournal(bytes: Buffer, apply: (change: StoredChange) => void): ReadJournal {
  const header = bytes.subarray(0, journalHeader.length).toString("latin1");
  if (!journalHeader.startsWith(header)) {
    return { wholeBytes: 0, damage: "it is not a replica's journal" };
  }
  if (header.length < journalHeader.length) return { wholeBytes: 0, damage: undefined };
  let at = journalHeader.length;
  while (at < bytes.length) {
    const end = bytes.indexOf(newline, at);
    const change = end < 0 ? undefined : readLine(bytes.subarray(at, end));
    if (change === undefined) {
      const isLast = end < 0 || end === bytes.length - 1;
      return { wholeBytes: at, damage: isLast ? undefined : `the line at byte ${at} is broken` };
    }
    apply(change);
    at = end + 1;
  }
  return { wholeBytes: at, damage: undefined };
}

function readLine(line: Buffer): StoredChange | undefined {
  const json = line.subarray(9);
  if (line.subarray(0, 9).toString("latin1") !== `${checksum(json)} `) return undefined;
  // The checksum holds, so this is what journalLine wrote.
  return JSON.parse(json.toString("utf8"));
}

function checksum(bytes: Buffer): string {
  return crc32(bytes).toString(16).padStart(8, "0");
}
