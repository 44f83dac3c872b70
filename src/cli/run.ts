import { inspect } from "node:util";
import { nearest } from "../domain/edit-distance.ts";
import { type CommandEntry, commands } from "./commands.ts";
import { exitCodes, UsageError } from "./exit.ts";
import { explain } from "./explain.ts";
import { commandHelp, overview } from "./help.ts";
import { version } from "./package.ts";
import { readCall } from "./read-options.ts";

/** Does what a command line says. The exit code; every failure is one line on stderr. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  // Who reads may go before all is written, e.g. `sealflow help | head -1`.
  for (const stream of [process.stdout, process.stderr]) {
    stream.off("error", ignoreClosedPipe).on("error", ignoreClosedPipe);
  }
  const [first = "help", ...rest] = args;
  if (first === "--version") return print(`${version()}\n`);
  if (first === "--help" || first === "-h" || first === "help") return help(rest);
  const found = findCommand(args);
  if (found === undefined) return unknownCommand(args);
  const name = found.name;
  try {
    const command = await found.entry.load();
    const call = readCall(command, args.slice(name.split(" ").length), process.env);
    if (call === "help") return print(commandHelp(name, found.entry, command));
    return await command.run(call);
  } catch (error) {
    const { line, exitCode } = explain(error);
    const sentence = /[.?]$/.test(line) ? line : `${line}.`;
    const advice = error instanceof UsageError ? ` See: sealflow ${name} --help` : "";
    fail(`sealflow ${name}: ${sentence}${advice}`);
    if (process.env.SEALFLOW_DEBUG) fail(inspect(error));
    return exitCode;
  }
}

interface Found {
  readonly name: string;
  readonly entry: CommandEntry;
}

function findCommand([first = "", second = ""]: readonly string[]): Found | undefined {
  for (const name of [`${first} ${second}`, first]) {
    const entry = commands.get(name);
    if (entry !== undefined) return { name, entry };
  }
  return undefined;
}

async function help(words: readonly string[]): Promise<number> {
  if (words.length === 0) return print(overview(commands));
  const found = findCommand(words);
  if (found === undefined) return unknownCommand([...words, "--help"]);
  return print(commandHelp(found.name, found.entry, await found.entry.load()));
}

/** Half of a name of two words, a misspelling, or neither. */
function unknownCommand(args: readonly string[]): number {
  const [first = "", second = ""] = args;
  const below = [...commands].filter(([name]) => name.startsWith(`${first} `));
  if (below.length > 0 && args.some((arg) => arg === "--help" || arg === "-h")) {
    return print(overview(new Map(below)));
  }
  const names = below.map(([name]) => name.slice(first.length + 1));
  if (names.length > 0) {
    fail(`sealflow ${first}: say which: sealflow ${first} ${names.join(" | ")}`);
    return exitCodes.usage;
  }
  const isOption = first.startsWith("-");
  const [known, typed] = isOption ? [["--help", "--version"], first] : candidates(first, second);
  const near = nearest(typed, known, Math.max(1, Math.floor(typed.length / 2)));
  const advice = near === undefined ? "" : ` Did you mean sealflow ${near}?`;
  fail(`sealflow: no ${isOption ? "option" : "command"} ${first}.${advice} See: sealflow help`);
  return exitCodes.usage;
}

/** `clint add` is near `client add`, and `clint` near `client`. */
function candidates(first: string, second: string): readonly [readonly string[], string] {
  const names = [...commands.keys()];
  const isTwoWords = names.some((name) => name.endsWith(` ${second}`));
  if (isTwoWords) return [names, `${first} ${second}`];
  return [names.map((name) => name.split(" ", 1)[0] ?? ""), first];
}

function print(text: string): number {
  process.stdout.write(text);
  return exitCodes.done;
}

function fail(line: string): void {
  process.stderr.write(`${line}\n`);
}

function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}
