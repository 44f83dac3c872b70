import type { Clock } from "../domain/clock.ts";
import type { ClientStore } from "../storage/port.ts";
import { loadServerKey } from "../storage/server-key.ts";
import { type DataPlace, databasePath } from "./data-options.ts";

/** Does `work` with the clients of a store, beside the server that may run on it. */
export async function withClients<T>(
  place: DataPlace & { readonly masterKey: string | undefined },
  clock: Clock,
  work: (clients: ClientStore) => Promise<T>,
): Promise<T> {
  const path = databasePath(place);
  // A store takes a while to load: not for help, nor for a wrong option.
  const { readKeyCheck } = await import("../storage/sqlite/file/identity.ts");
  const { openSqliteStore } = await import("../storage/sqlite/open.ts");
  const { key } = loadServerKey({
    dataDir: place.dataDir,
    fromSetting: place.masterKey,
    hasKeyCheck: readKeyCheck(path) !== null,
  });
  const store = await openSqliteStore({ path, masterKey: key, clock, exclusive: false });
  try {
    return await work(store.clients);
  } finally {
    await store[Symbol.asyncDispose]();
  }
}
