import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { play } from "./play.ts";

/** A guard of the server that is taken out: chaos must see that it is gone. */
interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const leases = "src/storage/sqlite/executions/leases.ts";
const reports = "src/storage/sqlite/tasks/reports.ts";

const mutants: readonly Mutant[] = [
  {
    name: "the lease token is not compared",
    file: leases,
    from: `
    row.leaseToken === leaseToken &&
    row.agentOwner === agent.owner &&
    row.agentId === agent.id &&`,
    to: "\n    agent.id !== '' &&",
  },
  {
    name: "a time-out ends nothing that has begun",
    file: "src/storage/sqlite/tasks/sweep.ts",
    from: "} else if (deadlineUs <= nowUs) {",
    to: "} else if (deadlineUs <= 0) {",
  },
  {
    name: "at_most_once is forgotten when a lease is lost",
    file: leases,
    from: "else if (row.atMostOnce) {",
    to: "else if (row.id === '') {",
  },
  {
    name: "at_most_once is forgotten after a failure",
    file: reports,
    from: " && !row.atMostOnce) {",
    to: ") {",
  },
  {
    name: "a repeated report is a new one",
    file: reports,
    from: "if (isRepeated(agent, reported)) return",
    to: "if (isRepeated(agent, reported) && executionId === '') return",
  },
  {
    name: "a request id is not remembered",
    file: "src/storage/sqlite/requests.ts",
    from: "if (key === undefined) return;",
    to: "if (objectId !== '') return;",
  },
];

const root = fileURLToPath(new URL("../../", import.meta.url));
const { values } = parseArgs({
  options: { seed: { type: "string", default: "1" }, histories: { type: "string", default: "10" } },
});

let survivors = 0;
for (const mutant of mutants) {
  const violations = await huntDown(mutant);
  if (violations.length === 0) survivors += 1;
  const found = violations.length === 0 ? "SURVIVED" : `${violations.length} violations, e.g.`;
  process.stdout.write(`${mutant.name}: ${found} ${violations[0] ?? ""}\n`);
}
process.exit(survivors === 0 ? 0 : 1);

/** The violations of the first history that has some. */
async function huntDown(mutant: Mutant): Promise<readonly string[]> {
  const copy = await mkdtemp(join(tmpdir(), "sealflow-mutant-"));
  try {
    await mutate(copy, mutant);
    const main = join(copy, "src/main.ts");
    const first = Number(values.seed);
    for (let seed = first; seed < first + Number(values.histories); seed++) {
      const { violations } = await play({ seed, seconds: 10, speed: 5, main });
      if (violations.length > 0) return violations;
    }
    return [];
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** A throw-away copy of the program with one guard less. */
async function mutate(copy: string, { file, from, to }: Mutant): Promise<void> {
  for (const name of ["src", "gen", "package.json"]) {
    await cp(join(root, name), join(copy, name), { recursive: true });
  }
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  const path = join(copy, file);
  const whole = await readFile(path, "utf8");
  if (whole.split(from).length !== 2) throw new Error(`${file} has no single ${from}`);
  await writeFile(path, whole.replace(from, to));
}
