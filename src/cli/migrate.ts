import { migrateSqliteFile } from "../storage/sqlite/open.ts";
import { defineCommand } from "./command.ts";
import { databasePath, dataOptions } from "./data-options.ts";
import { exitCodes } from "./exit.ts";

export const migrate = defineCommand({
  options: dataOptions,
  notes: ["serve does this by itself. A database that is served is refused if it needs a change."],
  async run({ values }) {
    const path = databasePath(values);
    const { changed } = migrateSqliteFile(path);
    const state = changed ? "was brought up to date" : "is up to date";
    process.stdout.write(`${path} ${state}.\n`);
    return exitCodes.done;
  },
});
