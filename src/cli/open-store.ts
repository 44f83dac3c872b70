import type { Clock } from "../domain/clock.ts";
import type { Store } from "../storage/port.ts";
import { loadServerKey } from "../storage/server-key.ts";
import { readKeyCheck } from "../storage/sqlite/identity.ts";
import { openSqliteStore } from "../storage/sqlite/open.ts";
import { type DataPlace, databasePath } from "./data-options.ts";

/** Opens the store of a command that works beside a running server. */
export async function openStoreBeside(
  place: DataPlace & { readonly masterKey: string | undefined },
  clock: Clock,
): Promise<Store> {
  const path = databasePath(place);
  const { key } = loadServerKey({
    dataDir: place.dataDir,
    fromSetting: place.masterKey,
    hasKeyCheck: readKeyCheck(path) !== null,
  });
  return openSqliteStore({ path, masterKey: key, clock, exclusive: false });
}
