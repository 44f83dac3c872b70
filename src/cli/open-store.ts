import type { Clock } from "../domain/clock.ts";
import type { Store } from "../storage/port.ts";
import { loadServerKey } from "../storage/server-key.ts";
import { type DataPlace, databasePath } from "./data-options.ts";

/** Opens the store of a command that works beside a running server. */
export async function openStoreBeside(
  place: DataPlace & { readonly masterKey: string | undefined },
  clock: Clock,
): Promise<Store> {
  const path = databasePath(place);
  // A store takes a while to load: not for help, nor for a wrong option.
  const { readKeyCheck } = await import("../storage/sqlite/identity.ts");
  const { openSqliteStore } = await import("../storage/sqlite/open.ts");
  const { key } = loadServerKey({
    dataDir: place.dataDir,
    fromSetting: place.masterKey,
    hasKeyCheck: readKeyCheck(path) !== null,
  });
  return openSqliteStore({ path, masterKey: key, clock, exclusive: false });
}
