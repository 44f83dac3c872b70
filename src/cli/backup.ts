import { existsSync } from "node:fs";
import { join } from "node:path";
import { backUpSqliteFile } from "../storage/sqlite/file/backup.ts";
import { defineCommand } from "./command.ts";
import { databasePath, dataOptions } from "./data-options.ts";
import { CommandError, exitCodes } from "./exit.ts";

export const backup = defineCommand({
  operands: ["PATH"],
  options: dataOptions,
  notes: [
    "Copies the database as it is at one moment into PATH, checks the copy, and replaces nothing. " +
      "Keep DIR/server.key and DIR/keys elsewhere: the copy holds no key.",
    "To go back to it: stop the server, put PATH in the place of the database and the keys into the " +
      "data directory, and start it. Devices see a new epoch and pull everything again.",
  ],
  async run({ values, operands: [target = ""] }) {
    const { dataDir } = values;
    const path = databasePath(values);
    if (!existsSync(path)) throw new CommandError(`there is no database ${path}`);
    const { bytes } = backUpSqliteFile(path, target);
    const keyFile = join(dataDir, "server.key");
    const key = existsSync(keyFile) ? keyFile : "SEALFLOW_MASTER_KEY";
    process.stdout.write(
      `Wrote ${target} (${bytes} bytes) and checked it.\n` +
        `It holds no key. Keep apart from it: ${key}, without which what is sealed stays closed, and ` +
        `${join(dataDir, "keys")}, without which tokens have to be made anew.\n`,
    );
    return exitCodes.done;
  },
});
