import { systemClock } from "./clock.ts";
import { defineCommand } from "./command.ts";
import { dataOptions, existingDatabasePath, masterKeyOption } from "./data-options.ts";
import { CommandError, exitCodes } from "./exit.ts";
import { withClients } from "./open-store.ts";

export const clientRemove = defineCommand({
  operands: ["NAME|ID"],
  options: { ...dataOptions, ...masterKeyOption },
  notes: ["A running server refuses its tokens within a second."],
  async run({ values, operands: [nameOrId = ""] }) {
    existingDatabasePath(values);
    const wasThere = await withClients(values, systemClock(), (clients) =>
      clients.removeClient(nameOrId),
    );
    if (!wasThere) {
      throw new CommandError(`there is no client ${nameOrId}. See: sealflow client list`);
    }
    process.stderr.write(`Client ${nameOrId} removed.\n`);
    return exitCodes.done;
  },
});
