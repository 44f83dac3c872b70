import { ReplicaError } from "./replica-error.ts";
import type {
  OpenStorage,
  PendingPush,
  Position,
  RecordName,
  StoredChange,
  StoredRecord,
} from "./replica-storage.ts";
import { StoredFold } from "./stored-fold.ts";

/** What a replica holds: in memory to be read, in its storage to last. */
export class LocalState {
  /** How many histories of the server it has gone over to: revisions of one say nothing in another. */
  recoveries = 0;
  readonly #storage: OpenStorage;
  readonly #fold = new StoredFold();
  #lastOrder: number;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(storage: OpenStorage) {
    this.#storage = storage;
    this.#fold.apply(storage.state);
    this.#lastOrder = storage.state.pushes.at(-1)?.order ?? 0;
  }

  get position(): Position {
    return this.#fold.position;
  }

  get pushCount(): number {
    return this.#fold.pushCount;
  }

  /** Those that the server has acknowledged or sent, tombstones too. */
  get records(): readonly StoredRecord[] {
    return this.#fold.records;
  }

  /** In the order in which they are to be sent. */
  get pushes(): readonly PendingPush[] {
    return this.#fold.pushes;
  }

  record(name: RecordName): StoredRecord | undefined {
    return this.#fold.record(name);
  }

  pushesOf(name: RecordName): readonly PendingPush[] {
    return this.#fold.pushesOf(name);
  }

  /** What this device has last seen or done, a tombstone too. */
  view(name: RecordName): StoredRecord | PendingPush | undefined {
    return this.pushesOf(name).at(-1) ?? this.record(name);
  }

  nextOrder(): number {
    this.#lastOrder += 1;
    return this.#lastOrder;
  }

  /**
   * Decides on what is held, while nothing else changes it, then stores the change, then shows it.
   * What `decide` throws changes nothing.
   * @throws ReplicaError CLOSED, and what the storage throws
   */
  change(decide: () => StoredChange | undefined | Promise<StoredChange | undefined>) {
    const mine = this.#last.then(async () => {
      if (this.#isClosed) throw new ReplicaError("CLOSED", "The replica is closed");
      const change = await decide();
      if (change === undefined) return;
      await this.#storage.save(change);
      this.#fold.apply(change);
    });
    this.#last = mine.catch(() => {});
    return mine;
  }

  /** Once what is under way is stored. */
  async close(): Promise<void> {
    const wasClosed = this.#isClosed;
    this.#isClosed = true;
    await this.#last;
    if (!wasClosed) await this.#storage.close();
  }
}
