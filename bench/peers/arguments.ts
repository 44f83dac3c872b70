import { openTables, type Tables } from "./tables.ts";

export interface PeerArguments {
  readonly tables: Tables;
  /** What comes after the database and its owner. */
  readonly rest: readonly string[];
}

/** `node PEER.ts DATABASE OWNER …` */
export function readArguments(): PeerArguments {
  const [databasePath = "", owner = "", ...rest] = process.argv.slice(2);
  return { tables: openTables(databasePath, owner), rest };
}

/** Tells the program that started this one that it serves; ends with it. */
export function serving(port: number): void {
  process.on("disconnect", () => process.exit());
  process.send?.(port);
}
