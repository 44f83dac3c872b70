import { newClient } from "../calls/auth/clients.ts";
import { scopeOfGroups } from "../calls/auth/scope.ts";
import { ServiceError } from "../domain/errors.ts";
import { systemClock } from "./clock.ts";
import { defineCommand } from "./command.ts";
import { checkDataDir, dataOptions, masterKeyOption } from "./data-options.ts";
import { CommandError, exitCodes } from "./exit.ts";
import { withClients } from "./open-store.ts";
import { grantOptions } from "./token-options.ts";

export const clientAdd = defineCommand({
  operands: ["NAME"],
  options: {
    ...grantOptions,
    json: { kind: "flag", argumentOnly: true, help: "print one line of JSON" },
    ...dataOptions,
    ...masterKeyOption,
  },
  notes: [
    "Prints two lines, client_id=… and client_secret=…, for POST /api/v1/auth/token or for " +
      "SEALFLOW_CLIENT_ID and SEALFLOW_CLIENT_SECRET of an agent. The secret is shown only now.",
    "A running server knows the client within a second.",
  ],
  async run({ values, operands: [name = ""] }) {
    const clock = systemClock();
    const { client, secret } = newClient({
      name,
      owner: values.sub,
      agentId: values.agent ?? "",
      scope: scopeOfGroups(values.scope ?? ""),
      nowUs: clock.wallUs(),
    });
    checkDataDir(values.dataDir);
    const add = withClients(values, clock, (clients) => clients.addClient(client));
    await add.catch((cause: unknown) => {
      if (!(cause instanceof ServiceError) || cause.reason !== "VALIDATION_ERROR") throw cause;
      throw new CommandError(`there is a client ${name} already. Remove it, or use another name`, {
        cause,
      });
    });
    const made = { client_id: client.id, client_secret: secret };
    const lines = Object.entries(made).map(([key, value]) => `${key}=${value}\n`);
    process.stdout.write(values.json ? `${JSON.stringify(made)}\n` : lines.join(""));
    process.stderr.write(`Client ${name} of ${values.sub} made. Its secret is shown only now.\n`);
    return exitCodes.done;
  },
});
