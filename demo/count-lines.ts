// An ordinary program: a task as JSON on its standard input, a result as JSON on its standard
// output.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const task = JSON.parse(readFileSync(0, "utf8")) as { input: { folder: string } };
const { folder } = task.input;
const counts: Record<string, number> = {};

for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !entry.name.endsWith(".ts")) continue;
  const room = entry.parentPath.slice(folder.length + 1).split("/")[0] || ".";
  const lines = readFileSync(join(entry.parentPath, entry.name), "utf8").split("\n").length;
  counts[room] = (counts[room] ?? 0) + lines;
}

process.stdout.write(JSON.stringify(counts));
