import { fileURLToPath } from "node:url";
import type { Database } from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { migrate as applyMigrations } from "drizzle-orm/better-sqlite3/migrator";
import { readMigrationFiles } from "drizzle-orm/migrator";

const migrationsFolder = fileURLToPath(new URL("./migrations", import.meta.url));

/** The database was written by a newer version of this program. */
export class NewerStoreError extends Error {
  constructor(path: string) {
    super(`${path} was migrated by a newer version of Sealflow. Run that version.`);
    this.name = "NewerStoreError";
  }
}

/** Whether the database lacks a migration of this version. Throws NewerStoreError. */
export function needsMigration(connection: Database): boolean {
  const newest = Math.max(...migrationTimes());
  const applied = lastApplied(connection);
  if (applied > newest) throw new NewerStoreError(connection.name);
  return applied < newest;
}

/** Brings the schema up to this version, in one transaction. The caller holds the lock. */
export function migrateConnection(connection: Database): void {
  // A rebuilt table would take its children with it. Inside the transaction of the migrator the
  // pragma does nothing.
  connection.pragma("foreign_keys = OFF");
  try {
    applyMigrations(drizzle(connection), { migrationsFolder });
    const broken = connection.pragma("foreign_key_check");
    if (Array.isArray(broken) && broken.length > 0) {
      throw new Error(`The migration left ${broken.length} rows without what they refer to`);
    }
  } finally {
    connection.pragma("foreign_keys = ON");
  }
}

/**
 * When each migration was made, in the order of their application. It must ascend: one older than
 * the last applied is skipped silently.
 */
export function migrationTimes(): readonly number[] {
  return readMigrationFiles({ migrationsFolder }).map((migration) => migration.folderMillis);
}

function lastApplied(connection: Database): number {
  const table = connection
    .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '__drizzle_migrations'")
    .get();
  if (table === undefined) return 0;
  const last = connection.prepare("SELECT max(created_at) FROM __drizzle_migrations").pluck().get();
  return Number(last ?? 0);
}
