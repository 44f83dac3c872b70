import {
  nameKey,
  type PendingPush,
  type Position,
  type RecordName,
  type StoredChange,
  type StoredRecord,
  type StoredState,
} from "./replica-storage.ts";

/** What many changes one after another come to. */
export class StoredFold {
  position: Position = { cursor: 0, epoch: "" };
  readonly #records = new Map<string, StoredRecord>();
  readonly #pushes = new Map<number, PendingPush>();
  readonly #pushesByName = new Map<string, readonly PendingPush[]>();

  get records(): readonly StoredRecord[] {
    return [...this.#records.values()];
  }

  get pushes(): readonly PendingPush[] {
    return [...this.#pushes.values()].sort((a, b) => a.order - b.order);
  }

  get pushCount(): number {
    return this.#pushes.size;
  }

  snapshot(): StoredState {
    const { position, records, pushes } = this;
    return { position, records, pushes };
  }

  record(name: RecordName): StoredRecord | undefined {
    return this.#records.get(nameKey(name));
  }

  /** By `order`. */
  pushesOf(name: RecordName): readonly PendingPush[] {
    return this.#pushesByName.get(nameKey(name)) ?? [];
  }

  apply({ position, records, removed, pushes, settled }: StoredChange): void {
    for (const name of removed ?? []) this.#records.delete(nameKey(name));
    for (const record of records ?? []) this.#records.set(nameKey(record), record);
    for (const order of settled ?? []) this.#settle(order);
    for (const push of pushes ?? []) this.#put(push);
    if (position !== undefined) this.position = position;
  }

  #put(push: PendingPush): void {
    this.#settle(push.order);
    this.#pushes.set(push.order, push);
    const all = [...this.pushesOf(push), push].sort((a, b) => a.order - b.order);
    this.#pushesByName.set(nameKey(push), all);
  }

  #settle(order: number): void {
    const push = this.#pushes.get(order);
    if (push === undefined) return;
    this.#pushes.delete(order);
    const left = this.pushesOf(push).filter((other) => other.order !== order);
    if (left.length === 0) this.#pushesByName.delete(nameKey(push));
    else this.#pushesByName.set(nameKey(push), left);
  }
}
