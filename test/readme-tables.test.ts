import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { commands } from "../src/cli/commands.ts";
import { listSettings, settingsTable } from "../src/cli/settings.ts";

const readme = readFileSync("README.md", "utf8");

test("the README has every setting, as the program has it", async () => {
  const table = settingsTable(await listSettings());
  for (const row of table.trim().split("\n")) expect(readme).toContain(row);
});

test("the README names every command", () => {
  for (const [name] of commands) expect(readme).toContain(`\`${name}`);
});
