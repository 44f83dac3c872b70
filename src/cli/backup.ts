import { existsSync } from "node:fs";
import { join } from "node:path";
import { backUpSqliteFile } from "../storage/sqlite/file/backup.ts";
import { defineCommand } from "./command.ts";
import { dataOptions, existingDatabasePath } from "./data-options.ts";
import { exitCodes } from "./exit.ts";

export const backup = defineCommand({
  operands: ["PATH"],
  options: dataOptions,
  notes: [
    "Copies the database as it is at one moment into PATH, checks the copy, and replaces " +
      "nothing. Keep DIR/server.key and DIR/keys elsewhere: the copy holds no key.",
    "To go back to it: stop the server, delete DIR/sealflow.db-wal and DIR/sealflow.db-shm, put " +
      "PATH in the place of DIR/sealflow.db and the keys into DIR, and start it. The epoch is " +
      "another then, so clients pull from 0.",
  ],
  async run({ values, operands: [target = ""] }) {
    const { dataDir } = values;
    const path = existingDatabasePath(values);
    const { bytes } = backUpSqliteFile(path, target);
    const keyFile = join(dataDir, "server.key");
    const key = existsSync(keyFile) ? keyFile : "SEALFLOW_MASTER_KEY";
    process.stdout.write(
      `Wrote ${target} (${bytes} bytes) and checked it.\n` +
        `It holds no key. Keep apart from it: ${key}, without which what is sealed stays ` +
        `closed, and ${join(dataDir, "keys")}, without which tokens have to be made anew.\n`,
    );
    return exitCodes.done;
  },
});
