import { existsSync } from "node:fs";
import { join } from "node:path";
import { CommandError, UsageError } from "./exit.ts";
import type { OptionTable } from "./options.ts";

export const dataDirDefault = "./data";

/** Where the data is: the same for every command that touches it. */
export const dataOptions = {
  dataDir: {
    kind: "text",
    placeholder: "DIR",
    default: dataDirDefault,
    help: "where the keys are, and the database unless --database says else",
  },
  database: {
    kind: "text",
    placeholder: "sqlite:PATH",
    otherwise: "sqlite:DIR/sealflow.db",
    help: "the database file",
  },
} as const satisfies OptionTable;

/** Of the commands that open what the database holds sealed. */
export const masterKeyOption = {
  masterKey: {
    kind: "secret",
    otherwise: "DIR/server.key",
    help: "the key that seals values at rest, 32 bytes in base64url, in place of DIR/server.key",
  },
} as const satisfies OptionTable;

export interface DataPlace {
  readonly dataDir: string;
  readonly database: string | undefined;
}

/** The path of the SQLite file. Throws UsageError for another kind of database. */
export function databasePath({ dataDir, database }: DataPlace): string {
  if (database === undefined) return join(dataDir, "sealflow.db");
  if (/^postgres(ql)?:/.test(database)) {
    throw new UsageError("--database: PostgreSQL is not in this version; use sqlite:PATH");
  }
  const [, path] = /^sqlite:(.+)$/.exec(database) ?? [];
  if (path === undefined || path === ":memory:") {
    throw new UsageError(`--database must be sqlite:PATH with the path of a file, not ${database}`);
  }
  return path;
}

/** The same, of a database that is there. A mistyped place must not look like an empty one. */
export function existingDatabasePath(place: DataPlace): string {
  const path = databasePath(place);
  if (existsSync(path)) return path;
  throw new CommandError(`there is no database ${path}. Give its --data-dir or --database`);
}

/**
 * For what makes keys before the first start: only the default directory is made by that. Another
 * one that is not there may be mistyped, and a key there would be nobody's.
 */
export function checkDataDir(dataDir: string): void {
  if (dataDir === dataDirDefault || existsSync(dataDir)) return;
  throw new CommandError(
    `there is no data directory ${dataDir}. Correct --data-dir, make it, or start the server first`,
  );
}
