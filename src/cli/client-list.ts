import type { Client } from "../storage/port.ts";
import { systemClock } from "./clock.ts";
import { defineCommand } from "./command.ts";
import { dataOptions, existingDatabasePath, masterKeyOption } from "./data-options.ts";
import { exitCodes } from "./exit.ts";
import { withClients } from "./open-store.ts";

export const clientList = defineCommand({
  options: {
    json: { kind: "flag", argumentOnly: true, help: "print a list in JSON" },
    ...dataOptions,
    ...masterKeyOption,
  },
  async run({ values }) {
    existingDatabasePath(values);
    const clients = await withClients(values, systemClock(), (store) => store.listClients());
    const text = values.json ? `${JSON.stringify(clients.map(view))}\n` : tableOf(clients);
    process.stdout.write(text);
    return exitCodes.done;
  },
});

/** Field by field: the secret's hash stays inside. */
function view({ id, name, owner, agentId, scope, createdUs }: Client) {
  return {
    client_id: id,
    name,
    sub: owner,
    ...(agentId === "" ? {} : { agent_id: agentId }),
    ...(scope === "" ? {} : { scope }),
    created_at: new Date(createdUs / 1000).toISOString(),
  };
}

function tableOf(clients: readonly Client[]): string {
  const rows = clients.map(({ id, name, owner, agentId, scope, createdUs }) => [
    name,
    id,
    owner,
    agentId || "-",
    scope || "-",
    new Date(createdUs / 1000).toISOString(),
  ]);
  const all = [["NAME", "CLIENT ID", "OWNER", "AGENT", "SCOPE", "CREATED"], ...rows].map((row) =>
    row.map(printable),
  );
  const widths = (all[0] ?? []).map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  return all
    .map(
      (row) =>
        `${row
          .map((text, i) => text.padEnd(widths[i] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

/** A name may hold what would move the cursor of a terminal. */
function printable(text: string): string {
  return text.replace(/\p{C}/gu, "\uFFFD");
}
