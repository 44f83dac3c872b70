import { type PushResult, SyncConflictReason } from "../../../gen/sealflow/v1/record_pb.ts";
import { pause, retryDelayMs } from "../backoff.ts";
import type { SealingKey } from "../sealing-key.ts";
import { openIncoming, refusalOf, toRefusal } from "./incoming.ts";
import { newPush } from "./outbox.ts";
import { ReplicaError } from "./replica-error.ts";
import {
  type Conflict,
  changeOf,
  type Refusal,
  type ReplicaRecord,
  type Resolution,
} from "./replica-events.ts";
import { openView, type ReplicaParts } from "./replica-parts.ts";
import { nameKey, type PendingPush, type RecordName } from "./replica-storage.ts";
import { compareVersions } from "./version.ts";

/** How often in a row one record may conflict before its pushes are held. */
const roundsMax = 8;
const backoff = { firstMs: 100, maxMs: 10_000 };

export type OnConflict = (conflict: Conflict) => Resolution | Promise<Resolution>;

/** What the server has in place of a push, whole. */
type Current = NonNullable<PushResult["current"]> | undefined;

/** What the server has in place of a push. Revision 0: nothing. */
interface ServerSide {
  readonly revision: number;
  readonly version?: string | undefined;
  readonly server?: ReplicaRecord;
  readonly refusal?: Refusal;
}

/** Pushes that wait for something else than the network. */
export class Conflicts {
  readonly #parts: ReplicaParts;
  readonly #onConflict: OnConflict;
  readonly #stopped: AbortSignal;
  readonly #blocked = new Map<string, "asking" | "held">();
  readonly #rounds = new Map<string, number>();

  /** `stopped`: aborted when the replica is closed. */
  constructor(parts: ReplicaParts, onConflict: OnConflict, stopped: AbortSignal) {
    this.#parts = parts;
    this.#onConflict = onConflict;
    this.#stopped = stopped;
  }

  isBlocked(name: RecordName): boolean {
    return this.#blocked.has(nameKey(name));
  }

  isHeld(name: RecordName): boolean {
    return this.#blocked.get(nameKey(name)) === "held";
  }

  hold(name: RecordName, error: unknown): void {
    this.#blocked.set(nameKey(name), "held");
    const { type, entityId } = name;
    this.#parts.emit({ kind: "held", record: { type, entityId }, error });
  }

  /** What was held is tried again; a question that is still open stays. */
  release(name: RecordName): void {
    this.#rounds.delete(nameKey(name));
    if (this.isHeld(name)) this.#blocked.delete(nameKey(name));
  }

  releaseAll(): void {
    for (const [key, why] of this.#blocked) if (why === "held") this.#blocked.delete(key);
    this.#rounds.clear();
  }

  /** Asks what becomes of a push, while other records go on. */
  raise(push: PendingPush, reason: SyncConflictReason, current: Current): void {
    const key = nameKey(push);
    const round = (this.#rounds.get(key) ?? 0) + 1;
    this.#rounds.set(key, round);
    if (round > roundsMax) {
      const message = `${push.type}/${push.entityId} conflicted ${roundsMax} times in a row`;
      this.hold(push, new ReplicaError("TOO_MANY_CONFLICTS", message));
      return;
    }
    this.#blocked.set(key, "asking");
    this.#settle(push, { reason, current, round }).catch((error: unknown) => {
      if (!this.#stopped.aborted) this.hold(push, error);
    });
  }

  async #settle(
    push: PendingPush,
    { reason, current, round }: { reason: SyncConflictReason; current: Current; round: number },
  ): Promise<void> {
    const { random, outbox } = this.#parts;
    if (round > 1) {
      const delayMs = retryDelayMs(round, backoff, { error: undefined, random });
      await pause(delayMs, this.#stopped);
    }
    if (reason === SyncConflictReason.MUTATION_REUSED) await this.#sendAsNew(push);
    else await this.#ask(push, current);
    if (this.#blocked.get(nameKey(push)) === "asking") this.#blocked.delete(nameKey(push));
    outbox.wake();
  }

  /** The server knows the id for something else. */
  #sendAsNew({ order }: PendingPush): Promise<void> {
    return this.#parts.state.change(() => {
      const push = this.#parts.state.pushes.find((each) => each.order === order);
      if (push === undefined) return undefined;
      return { pushes: [{ ...push, mutationId: crypto.randomUUID() }] };
    });
  }

  async #ask(name: RecordName, current: Current): Promise<void> {
    const { state, key, emit } = this.#parts;
    const { recoveries } = state;
    const serverSide = await this.#adopt(current);
    for (;;) {
      const shown = state.pushesOf(name).at(-1);
      if (shown === undefined) return;
      const { server, refusal } = serverSide;
      const conflict = { local: await openView(shown, key), server, refusal };
      emit({ kind: "conflict", conflict });
      const resolution = await this.#onConflict(conflict);
      // Another history since: what the server has there is still to be found out.
      if (state.recoveries !== recoveries) return;
      if (await this.#resolve(shown, resolution, serverSide)) {
        if (resolution === "server") await this.#tellServers(name);
        return;
      }
    }
  }

  /** Takes up the server's side as what the server has, if it is believed. */
  async #adopt(current: Current): Promise<ServerSide> {
    if (current === undefined) return { revision: 0 };
    const { state, key, emit, aheadOfFeed } = this.#parts;
    const incoming = await openIncoming(current, key);
    let { record, code } = incoming;
    await state.change(() => {
      const held = state.record(record);
      // The feed was faster than the answer.
      if (held !== undefined && held.revision > record.revision) {
        record = held;
        code = undefined;
        return undefined;
      }
      code ??= refusalOf(record, held);
      if (code !== undefined) return undefined;
      aheadOfFeed.set(nameKey(record), record.revision);
      return { records: [record] };
    });
    const { revision, version } = record;
    if (code === undefined) return { revision, version, server: await openView(record, key) };
    const refused = toRefusal(record, code);
    emit({ kind: "refused", refusal: refused });
    return { revision, version: code === "BAD_VERSION" ? undefined : version, refusal: refused };
  }

  /** False when the device has pushed more meanwhile, so that the answer was to another question. */
  async #resolve(
    shown: PendingPush,
    resolution: Resolution,
    { revision, version }: ServerSide,
  ): Promise<boolean> {
    const { state, key } = this.#parts;
    let isDone = true;
    await state.change(async () => {
      const pushes = state.pushesOf(shown);
      if (pushes.length === 0) return undefined;
      isDone = pushes.at(-1)?.mutationId === shown.mutationId;
      if (!isDone) return undefined;
      const settled = pushes.map(({ order }) => order);
      if (resolution === "server") {
        return revision === 0 ? { settled, removed: [shown] } : { settled };
      }
      const wanted = resolution === "local" ? await localValue(shown, key) : resolution;
      const { type, entityId } = shown;
      const draft = { deleted: false, ...wanted, type, entityId, version: wanted.version };
      const after = greater(shown.version, version);
      const push = await newPush(state, draft, { key, after, expectedRevision: revision });
      return { settled, pushes: [push] };
    });
    return isDone;
  }

  async #tellServers(name: RecordName): Promise<void> {
    const { state, key, emit } = this.#parts;
    const view = state.view(name);
    if (view === undefined) return;
    emit(changeOf(await openView(view, key)));
  }
}

/** The same with the next version. */
async function localValue(shown: PendingPush, key: SealingKey | undefined) {
  const { deleted, data } = await openView(shown, key);
  return { deleted, data, version: undefined };
}

function greater(a: string, b: string | undefined): string {
  return b === undefined || compareVersions(a, b) > 0 ? a : b;
}
