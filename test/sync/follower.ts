import { Code, ConnectError } from "@connectrpc/connect";
import { type SyncUpdate, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import type { RpcCaller } from "../doors/callers.ts";

/** What a device was told of one entity. */
export interface Told {
  readonly revision: number;
  readonly version: string;
  readonly deleted: boolean;
}

/** Follows a feed by its cursor alone, and notes what is wrong in what it is told. */
export class Follower {
  cursor: bigint;
  /** The newest of each entity, by type and id. */
  readonly state = new Map<string, Told>();
  readonly wrongs: string[] = [];
  #last = 0n;

  constructor(since = 0n) {
    this.cursor = since;
  }

  /** Reads one stream until `isEnough`, then cuts it. */
  async read(
    { sync }: Pick<RpcCaller, "sync">,
    isEnough: (update: SyncUpdate) => boolean,
  ): Promise<void> {
    const cut = new AbortController();
    let previous: bigint | undefined;
    try {
      const request = { since: this.cursor, heartbeat: { seconds: 1n, nanos: 0 } };
      for await (const update of sync.subscribe(request, { signal: cut.signal })) {
        if (previous !== undefined && update.prevCursor !== previous) {
          this.wrongs.push(`after ${previous} came one that follows ${update.prevCursor}`);
        }
        previous = update.cursor;
        this.#take(update);
        if (isEnough(update)) return;
      }
    } catch (cause) {
      if (!(cause instanceof ConnectError && cause.code === Code.Canceled)) throw cause;
    } finally {
      cut.abort();
    }
  }

  async readToEnd(caller: Pick<RpcCaller, "sync">): Promise<void> {
    await this.read(caller, ({ kind }) => kind === UpdateKind.UP_TO_DATE);
  }

  #take({ cursor, record }: SyncUpdate): void {
    if (cursor < this.cursor) this.wrongs.push(`cursor ${cursor} after ${this.cursor}`);
    this.cursor = cursor;
    if (record === undefined) return;
    const { type, entityId, deleted, version } = record;
    const name = `${type}/${entityId}`;
    const revision = Number(record.revision);
    if (record.cursor <= this.#last) this.wrongs.push(`${name} ${revision} out of its order`);
    this.#last = record.cursor;
    const known = this.state.get(name)?.revision ?? 0;
    if (revision <= known) this.wrongs.push(`${name} ${revision} after ${known}`);
    this.state.set(name, { revision, version, deleted });
  }
}

/** The same as a pull from the beginning tells it, tombstones too. */
export async function pullState(
  { sync }: Pick<RpcCaller, "sync">,
  limit = 1000,
): Promise<Map<string, Told>> {
  const state = new Map<string, Told>();
  let since = 0n;
  for (;;) {
    const page = await sync.pullState({ since, limit, includeDeleted: true });
    for (const { type, entityId, revision, version, deleted } of page.records) {
      state.set(`${type}/${entityId}`, { revision: Number(revision), version, deleted });
    }
    since = page.cursor;
    if (!page.hasMore) return state;
  }
}

export function sorted<T>(state: ReadonlyMap<string, T>): [string, T][] {
  return [...state].sort(([a], [b]) => (a < b ? -1 : 1));
}
