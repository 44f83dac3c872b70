import { constants, type FileHandle, open, readFile, rename, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { journalLine, journalOf, readJournal } from "./journal-lines.ts";
import { ReplicaError, storageTaken } from "./replica-error.ts";
import type { ReplicaStorage, StoredChange, StoredState } from "./replica-storage.ts";
import { StoredFold } from "./stored-fold.ts";

export type { OpenStorage, ReplicaStorage } from "./replica-storage.ts";

const fromScratch = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND;
/** A journal below this is not worth writing anew. */
const compactFromBytes = 1024 * 1024;

/**
 * Keeps a replica in one file of the user's own (mode 0600), in an existing directory, for Node. A
 * change is a line with a checksum at its end, on disk before it counts; what a crash leaves
 * half-written is dropped at the next open. When the file has doubled it is written anew beside
 * itself (`PATH.new`) and then takes its own place.
 */
export function fileStorage(path: string): ReplicaStorage {
  const place = resolve(path);
  return {
    async open() {
      const { fold, wholeBytes } = await readFold(place);
      const state = fold.snapshot();
      const journal = wholeBytes === 0 ? await writeAnew(place, state) : await open(place, "a");
      const file = new JournalFile(place, fold, journal);
      await file.begin(wholeBytes);
      return { state, save: (change) => file.append(change), close: () => file.close() };
    },
  };
}

async function readFold(path: string) {
  const fold = new StoredFold();
  const bytes = await readFile(path).catch((error: unknown) => {
    if (isMissing(error)) return Buffer.alloc(0);
    throw error;
  });
  const { wholeBytes, damage } = readJournal(bytes, (change) => fold.apply(change));
  if (damage !== undefined) throw new ReplicaError("STORAGE_DAMAGED", `${path}: ${damage}`);
  return { fold, wholeBytes };
}

class JournalFile {
  readonly #path: string;
  readonly #fold: StoredFold;
  #file: FileHandle;
  #bytes = 0;
  #compactAtBytes = compactFromBytes;

  constructor(path: string, fold: StoredFold, file: FileHandle) {
    this.#path = path;
    this.#fold = fold;
    this.#file = file;
  }

  /** Drops what is half-written. A line that changes nothing tells others that it is ours now. */
  async begin(wholeBytes: number): Promise<void> {
    if (wholeBytes > 0) await this.#file.truncate(wholeBytes);
    this.#bytes = (await this.#file.stat()).size;
    await this.append({});
  }

  async append(change: StoredChange): Promise<void> {
    const line = journalLine(change);
    await this.#refuseOthers();
    try {
      await this.#file.appendFile(line);
      await this.#file.datasync();
    } catch (error) {
      // A full disk: what stands there of the line must not come before the next one.
      await this.#file.truncate(this.#bytes);
      throw error;
    }
    this.#bytes += line.length;
    this.#fold.apply(change);
    if (this.#bytes > this.#compactAtBytes) await this.#compact();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** Whoever opens a replica's file adds to it, or puts another in its place. */
  async #refuseOthers(): Promise<void> {
    const [named, opened] = await Promise.all([
      stat(this.#path, { bigint: true }).catch(() => undefined),
      this.#file.stat({ bigint: true }),
    ]);
    const isOurs = named?.ino === opened.ino && opened.size === BigInt(this.#bytes);
    if (!isOurs) throw storageTaken(this.#path);
  }

  /** The change is stored already: if this fails, the longer file serves as well. */
  async #compact(): Promise<void> {
    this.#compactAtBytes = this.#bytes * 2;
    try {
      const shorter = await writeAnew(this.#path, this.#fold.snapshot());
      await this.#file.close();
      this.#file = shorter;
      this.#bytes = (await shorter.stat()).size;
      this.#compactAtBytes = Math.max(compactFromBytes, this.#bytes * 2);
    } catch {}
  }
}

/** Puts a new file in the place of the old one, and answers it open. */
async function writeAnew(path: string, state: StoredState): Promise<FileHandle> {
  const aside = `${path}.new`;
  const file = await open(aside, fromScratch, 0o600);
  try {
    for (const line of journalOf(state)) await file.appendFile(line);
    await file.sync();
    await rename(aside, path);
    await syncDirectory(dirname(path));
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Makes a name survive a loss of power. Windows has no such call. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
