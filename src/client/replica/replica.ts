import type { Client } from "@connectrpc/connect";
import type { SyncService } from "../../../gen/sealflow/v1/sync_pb.ts";
import { keyBytes, type SealingKey } from "../sealing-key.ts";
import { Conflicts } from "./conflicts.ts";
import { keepInStep } from "./connection.ts";
import { Latch } from "./latch.ts";
import { LocalState } from "./local-state.ts";
import { type Draft, newPush } from "./outbox.ts";
import type {
  Conflict,
  LiveRecord,
  ReplicaEvent,
  ReplicaRecord,
  Resolution,
} from "./replica-events.ts";
import { openView, type ReplicaParts } from "./replica-parts.ts";
import {
  nameKey,
  type PendingPush,
  type RecordName,
  type ReplicaStorage,
  type StoredRecord,
} from "./replica-storage.ts";

/** What a replica keeps in step, with whom and where. */
export interface ReplicaOptions<Data = unknown> {
  /** `sync` of `connect(…)`. */
  readonly sync: Client<typeof SyncService>;
  /** Its own: one storage is for one owner at one server. */
  readonly storage: ReplicaStorage;
  /**
   * Asked when the server has other than what this device wants to push. It may take its time:
   * other records go on meanwhile. When it throws, the push is held.
   */
  readonly onConflict: (conflict: Conflict<Data>) => Resolution<Data> | Promise<Resolution<Data>>;
  /** Seals what is pushed and opens what comes; what it does not open is refused. */
  readonly key?: SealingKey;
  /** Told of what happens. What it throws is dropped. */
  readonly onEvent?: (event: ReplicaEvent<Data>) => void;
  /** From 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
}

/** What to make of a record. */
export interface RecordDraft<Data = unknown> extends RecordName {
  /** A value of JSON or bytes; without a key a text, which goes out as it is. */
  readonly data: Data;
  /** Greater than what the replica holds. Default: the next one. */
  readonly version?: string;
}

/** The records of an owner on this device, in step with the server whenever it can be reached. */
export interface StateReplica<Data = unknown> {
  /** Begins to keep in step, and tries what is held once more. */
  start(): void;
  /** Ends it. What is held stays readable, and pushes wait for the next `start`. */
  stop(): Promise<void>;
  /** Stops, and lets go of the storage: nothing else can be called after. */
  close(): Promise<void>;
  /**
   * A record as this device sees it; undefined when there is none, or no more.
   * @throws SealError when it was stored under another key
   */
  get(type: string, entityId: string): Promise<LiveRecord<Data> | undefined>;
  /** All records, or all of a type, in no order. */
  list(type?: string): Promise<readonly LiveRecord<Data>[]>;
  /**
   * Stores a record here, and sends it when the server can be reached, on the condition that nobody
   * has changed it there since. Resolves once it is stored here. (Without a key, two devices that
   * push the same text under the same version have made one change, and neither is told.)
   * @throws ReplicaError BAD_RECORD, VERSION_NOT_GREATER, CLOSED, STORAGE_TAKEN; SealError
   */
  push(draft: RecordDraft<Data>): Promise<LiveRecord<Data>>;
  /**
   * The same with what `change` makes of the record as it is at that moment. `change` must not wait.
   */
  update(
    type: string,
    entityId: string,
    change: (held: LiveRecord<Data> | undefined) => Data,
  ): Promise<LiveRecord<Data>>;
  /** Deletes a record in the same way, with a sealed proof if there is a key. */
  delete(type: string, entityId: string, version?: string): Promise<void>;
  /** Drops what is not acknowledged of a record. One that is being sent may still arrive. */
  discard(type: string, entityId: string): Promise<void>;
  /** How many pushes are not acknowledged. */
  readonly pendingCount: number;
}

/**
 * Opens a replica as it was left, without calling the server. `Data` is the caller's word for what
 * its records hold; it is not checked.
 * @throws SealError BAD_KEY; ReplicaError STORAGE_DAMAGED; what the storage throws
 */
export async function openReplica<Data = unknown>(
  options: ReplicaOptions<Data>,
): Promise<StateReplica<Data>> {
  if (options.key !== undefined) keyBytes(options.key);
  const storage = await options.storage.open();
  return typed(new OpenReplica(untyped(options), new LocalState(storage)));
}

class OpenReplica implements StateReplica {
  readonly #parts: ReplicaParts;
  readonly #conflicts: Conflicts;
  readonly #closing = new AbortController();
  #running: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;

  constructor({ sync, key, onEvent, onConflict, random }: ReplicaOptions, state: LocalState) {
    this.#parts = {
      ...{ sync, state, key, random: random ?? Math.random },
      outbox: new Latch(),
      aheadOfFeed: new Map(),
      emit(event) {
        try {
          onEvent?.(event);
        } catch {
          // Whoever listens must not be able to stop the work.
        }
      },
    };
    this.#conflicts = new Conflicts(this.#parts, onConflict, this.#closing.signal);
  }

  get pendingCount(): number {
    return this.#parts.state.pushCount;
  }

  start(): void {
    if (this.#running !== undefined || this.#closing.signal.aborted) return;
    this.#conflicts.releaseAll();
    const stop = new AbortController();
    const ended = keepInStep(this.#parts, this.#conflicts, stop.signal);
    this.#running = { stop, ended };
  }

  async stop(): Promise<void> {
    const running = this.#running;
    running?.stop.abort();
    await running?.ended;
    if (this.#running === running) this.#running = undefined;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.stop();
    await this.#parts.state.close();
  }

  async get(type: string, entityId: string): Promise<LiveRecord | undefined> {
    const view = this.#parts.state.view({ type, entityId });
    const [record] = view === undefined ? [] : await this.#openLive([view]);
    return record;
  }

  async list(type?: string): Promise<readonly LiveRecord[]> {
    const { state } = this.#parts;
    const views = new Map([...state.records, ...state.pushes].map((each) => [nameKey(each), each]));
    const all = [...views.values()];
    return this.#openLive(type === undefined ? all : all.filter((view) => view.type === type));
  }

  async push({ type, entityId, data, version }: RecordDraft): Promise<LiveRecord> {
    return live(await this.#enqueue(() => ({ type, entityId, data, version, deleted: false })));
  }

  async update(
    type: string,
    entityId: string,
    change: (held: LiveRecord | undefined) => unknown,
  ): Promise<LiveRecord> {
    const made = await this.#enqueue(async () => {
      const data = change(await this.get(type, entityId));
      return { type, entityId, data, version: undefined, deleted: false };
    });
    return live(made);
  }

  async delete(type: string, entityId: string, version?: string): Promise<void> {
    await this.#enqueue(() => ({ type, entityId, version, deleted: true }));
  }

  async discard(type: string, entityId: string): Promise<void> {
    const { state } = this.#parts;
    const name = { type, entityId };
    await state.change(() => ({ settled: state.pushesOf(name).map(({ order }) => order) }));
    this.#conflicts.release(name);
  }

  async #openLive(views: readonly (StoredRecord | PendingPush)[]): Promise<readonly LiveRecord[]> {
    const { key } = this.#parts;
    const there = views.filter(({ deleted }) => !deleted);
    return (await Promise.all(there.map((view) => openView(view, key)))).map(live);
  }

  /** What a record is to be, made while nothing else changes it. */
  async #enqueue(make: () => Draft | Promise<Draft>): Promise<ReplicaRecord> {
    const { state, key, outbox } = this.#parts;
    let made: ReplicaRecord | undefined;
    await state.change(async () => {
      const draft = await make();
      const replaced = this.#conflicts.isHeld(draft) ? state.pushesOf(draft) : [];
      const push = await newPush(state, draft, {
        key,
        after: state.view(draft)?.version,
        expectedRevision: state.record(draft)?.revision ?? 0,
      });
      made = await openView(push, key);
      return { settled: replaced.map(({ order }) => order), pushes: [push] };
    });
    if (made === undefined) throw new Error("nothing was made");
    this.#conflicts.release(made);
    outbox.wake();
    return made;
  }
}

function live(record: ReplicaRecord): LiveRecord {
  if (record.deleted) throw new Error("it is deleted");
  return record;
}

/** The borders between what the caller says its data are and what comes. */
function untyped<Data>(options: ReplicaOptions<Data>): ReplicaOptions {
  return options as unknown as ReplicaOptions;
}

function typed<Data>(replica: StateReplica): StateReplica<Data> {
  return replica as StateReplica<Data>;
}
