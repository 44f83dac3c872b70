import { storageTaken } from "./replica-error.ts";
import {
  nameKey,
  type PendingPush,
  type Position,
  type ReplicaStorage,
  type StoredChange,
  type StoredRecord,
  type StoredState,
} from "./replica-storage.ts";

const stores = { records: "records", pushes: "pushes", meta: "meta" } as const;
const allStores = Object.values(stores);

/**
 * Keeps a replica in the browser, in an IndexedDB database of the page's origin named
 * `sealflow replica NAME`. Of several tabs, the last to open it has it.
 */
export function indexedDbStorage(name: string): ReplicaStorage {
  return {
    async open() {
      const database = await openDatabase(`sealflow replica ${name}`);
      const holder = crypto.randomUUID();
      await write(database, ({ meta }) => meta.put(holder, "holder"));
      return {
        state: await readState(database),
        save: (change) => saveAs(database, holder, change),
        async close() {
          database.close();
        },
      };
    },
  };
}

function openDatabase(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore(stores.records);
    request.result.createObjectStore(stores.pushes);
    request.result.createObjectStore(stores.meta);
  };
  return resultOf(request);
}

async function readState(database: IDBDatabase): Promise<StoredState> {
  const transaction = database.transaction(allStores, "readonly");
  const [position, records, pushes] = await Promise.all([
    resultOf<Position | undefined>(transaction.objectStore(stores.meta).get("position")),
    resultOf<StoredRecord[]>(transaction.objectStore(stores.records).getAll()),
    resultOf<PendingPush[]>(transaction.objectStore(stores.pushes).getAll()),
  ]);
  return { position: position ?? { cursor: 0, epoch: "" }, records, pushes };
}

/** In one transaction, which begins by asking whether the database is still this holder's. */
function saveAs(database: IDBDatabase, holder: string, change: StoredChange): Promise<void> {
  let isTaken = false;
  const done = write(database, (opened) => {
    const request = opened.meta.get("holder");
    request.onsuccess = () => {
      isTaken = request.result !== holder;
      if (isTaken) opened.meta.transaction.abort();
      else putAll(opened, change);
    };
  });
  return done.catch((error: unknown) => {
    throw isTaken ? storageTaken(database.name) : error;
  });
}

type Opened = Readonly<Record<keyof typeof stores, IDBObjectStore>>;

function putAll(
  opened: Opened,
  { position, records, removed, pushes, settled }: StoredChange,
): void {
  for (const name of removed ?? []) opened.records.delete(nameKey(name));
  for (const record of records ?? []) opened.records.put(record, nameKey(record));
  for (const order of settled ?? []) opened.pushes.delete(order);
  for (const push of pushes ?? []) opened.pushes.put(push, push.order);
  if (position !== undefined) opened.meta.put(position, "position");
}

function write(database: IDBDatabase, act: (opened: Opened) => void): Promise<void> {
  const transaction = database.transaction(allStores, "readwrite", { durability: "strict" });
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
    act({
      records: transaction.objectStore(stores.records),
      pushes: transaction.objectStore(stores.pushes),
      meta: transaction.objectStore(stores.meta),
    });
  });
}

function resultOf<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
