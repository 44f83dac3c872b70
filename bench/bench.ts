// Measures Sealflow and its peers side by side:  npm run bench -- --help
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Closers } from "../src/closers.ts";
import { h2loadMissing, hasH2load } from "./load/h2load.ts";
import { machineText, thisMachine } from "./measure/machine.ts";
import { tableText } from "./measure/table.ts";
import { OptionError, type Options, readOptions, usage } from "./options.ts";
import type { Bench, Finding, Scenario } from "./scenario.ts";
import { scenarios } from "./scenarios.ts";
import { buildSealflow } from "./servers/sealflow.ts";

const results = fileURLToPath(new URL("results/", import.meta.url));
/** Not the system's temporary folder: that may be memory, where durable writes cost nothing. */
const data = fileURLToPath(new URL("data/", import.meta.url));

try {
  await main(readOptions(process.argv.slice(2)));
} catch (cause) {
  if (!(cause instanceof OptionError)) throw cause;
  process.stderr.write(`bench: ${cause.message}\n`);
  process.exitCode = 1;
}

async function main(options: Options): Promise<void> {
  if (options.task === "help") process.stdout.write(usage);
  else if (options.task === "list") process.stdout.write(listText());
  else await measure(options, await chosen(options.only));
}

function listText(): string {
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  return scenarios.map(({ name, about }) => `${name.padEnd(width)}  ${about}\n`).join("");
}

/** Throws OptionError for a name that there is none of, and when the machine lacks what they need. */
async function chosen(only: readonly string[]): Promise<readonly Scenario[]> {
  const found = only.map((name) => {
    const scenario = scenarios.find((it) => it.name === name);
    if (scenario === undefined) throw new OptionError(`no scenario ${name}; see --list`);
    return scenario;
  });
  const all = found.length === 0 ? scenarios : found;
  if (all.some(({ usesH2load }) => usesH2load) && !(await hasH2load())) {
    throw new OptionError(h2loadMissing);
  }
  if (process.platform !== "linux") throw new OptionError("it reads /proc, so it needs Linux");
  return all;
}

async function measure({ settings, json }: Options, all: readonly Scenario[]): Promise<void> {
  const machine = thisMachine();
  process.stdout.write(`${machineText(machine)}\n`);
  const findings: Record<string, Finding> = {};
  const path = resolve(json ?? join(results, `${machine.time.replaceAll(":", "-")}.json`));
  await mkdir(dirname(path), { recursive: true });
  await using built = await newFolder("package");
  const command = await buildSealflow(built.path);
  for (const scenario of all) {
    const finding = await runScenario(scenario, { settings, command }).catch((cause: unknown) => {
      process.stderr.write(`${scenario.name}: ${cause instanceof Error ? cause.stack : cause}\n`);
      process.exitCode = 1;
    });
    if (finding === undefined) continue;
    process.stdout.write(`${findingText(finding)}\n`);
    findings[scenario.name] = finding;
    // After each, so that whoever stops a long run keeps what it has found.
    const text = JSON.stringify({ machine, settings, findings }, null, 2);
    await writeFile(path, `${text}\n`);
  }
  process.stdout.write(`${path}\n`);
}

async function newFolder(name: string): Promise<AsyncDisposable & { readonly path: string }> {
  await mkdir(data, { recursive: true });
  const path = await mkdtemp(join(data, `${name}-`));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** In a folder of its own; what it has opened is closed whether it succeeds or not. */
async function runScenario(
  scenario: Scenario,
  given: Pick<Bench, "settings" | "command">,
): Promise<Finding> {
  const closers = new Closers();
  const { path: folder } = closers.use(await newFolder(scenario.name));
  const stop = () => void closers.close().finally(() => process.exit(1));
  process.once("SIGINT", stop);
  try {
    const say = (text: string) => void process.stderr.write(`${scenario.name}: ${text}\n`);
    return await scenario.run({ ...given, folder, closers, say });
  } finally {
    process.off("SIGINT", stop);
    await closers.close();
  }
}

function findingText({ tables, notes }: Finding): string {
  return [...tables.map(tableText), ...notes.map((note) => `  - ${note}\n`)].join("");
}
