import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { nearest } from "../domain/edit-distance.ts";
import type { Call, Command } from "./command.ts";
import { UsageError } from "./exit.ts";
import { argumentOf, type Option, placeholderOf, variableOf } from "./options.ts";
import { readBoolean, splitList } from "./read-values.ts";

type Environment = Readonly<Record<string, string | undefined>>;
type Value = string | boolean | readonly string[] | undefined;

/** What was typed, before it is checked. */
interface Typed {
  /** By argument, e.g. `--host`; null for one without a value. */
  readonly options: ReadonlyMap<string, readonly (string | null)[]>;
  readonly operands: readonly string[];
  readonly program: readonly string[];
}

/**
 * Reads the arguments of a command, and the environment for what they leave out. Answers `help`
 * when that is asked for. Throws UsageError.
 */
export function readCall(
  command: Command,
  args: readonly string[],
  env: Environment,
): Call | "help" {
  const table = Object.entries(command.options);
  const typed = splitArguments(command, args);
  if (typed.options.has("--help") || typed.options.has("-h")) return "help";
  const names = table.flatMap(([name, option]) => argumentsOf(name, option));
  for (const [argument] of typed.options) {
    if (!names.includes(argument)) throw unknownOption(argument, { names, table });
  }
  const values = table.map(([name, option]) => [name, readOption({ name, option, typed, env })]);
  checkOperands(command, typed);
  // The border between the table and the types that it stands for.
  return {
    values: Object.fromEntries(values) as Call["values"],
    operands: typed.operands,
    program: typed.program,
  };
}

function splitArguments({ options, takesProgram }: Command, args: readonly string[]): Typed {
  const found = new Map<string, (string | null)[]>();
  const operands: string[] = [];
  const program: string[] = [];
  const { tokens } = parseArgs({
    args: [...args],
    options: parserOptions(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  let isTerminated = false;
  for (const token of tokens) {
    if (token.kind === "option-terminator") isTerminated = true;
    else if (token.kind === "positional") {
      (isTerminated && takesProgram ? program : operands).push(token.value);
    } else {
      const { rawName, value, inlineValue } = token;
      if (inlineValue === false && value.startsWith("-") && value !== "-") {
        throw new UsageError(`${rawName} needs a value (one that begins with - as ${rawName}=…)`);
      }
      found.set(rawName, [...(found.get(rawName) ?? []), value ?? null]);
    }
  }
  return { options: found, operands, program };
}

function parserOptions(table: Command["options"]) {
  return Object.fromEntries(
    Object.entries(table).map(([name, option]) => [
      argumentOf(name, option).slice(2),
      { type: option.kind === "flag" ? ("boolean" as const) : ("string" as const) },
    ]),
  );
}

function argumentsOf(name: string, option: Option): readonly string[] {
  const argument = argumentOf(name, option);
  return option.kind === "flag" ? [argument, negationOf(argument)] : [argument];
}

function negationOf(argument: string): string {
  return `--no-${argument.slice(2)}`;
}

function unknownOption(
  argument: string,
  {
    names,
    table,
  }: { readonly names: readonly string[]; readonly table: readonly [string, Option][] },
): UsageError {
  const secret = table.find(([name, option]) => `${argument}-file` === argumentOf(name, option));
  if (secret?.[1].kind === "secret") {
    const where = `${variableOf(...secret)}, or the path of its file in ${argument}-file`;
    return new UsageError(
      `${argument}: a secret is no argument, for others can see it. Set ${where}`,
    );
  }
  const near = nearest(argument, [...names, "--help"], 3);
  return new UsageError(
    `no option ${argument}${near === undefined ? "" : `. Did you mean ${near}?`}`,
  );
}

interface Reading {
  readonly name: string;
  readonly option: Option;
  readonly typed: Typed;
  readonly env: Environment;
}

/** The argument wins, then the variable, then the default. */
function readOption({ name, option, typed, env }: Reading): Value {
  const argument = argumentOf(name, option);
  const given = (typed.options.get(argument) ?? []).map((value) => {
    if (value !== null || option.kind === "flag") return value ?? "true";
    throw new UsageError(`${argument} needs a value: ${argument} ${placeholderOf(option)}`);
  });
  const variable = variableOf(name, option);
  const set = variable === undefined ? undefined : env[variable] || undefined;
  switch (option.kind) {
    case "flag": {
      if (typed.options.has(negationOf(argument))) return false;
      const text = given.at(-1);
      if (text !== undefined) return readBoolean(argument, text);
      return set === undefined ? false : readBoolean(variable ?? argument, set);
    }
    case "list":
      return (given.length > 0 ? given : [set ?? ""]).flatMap(splitList);
    case "secret":
      return readSecret({ file: given.at(-1), variable, set, env });
    case "text": {
      const text = given.at(-1) ?? set ?? option.default;
      if (text !== undefined || option.required !== true) return text;
      throw new UsageError(`${argument} ${placeholderOf(option)} is missing`);
    }
  }
}

function readSecret({
  file,
  variable,
  set,
  env,
}: {
  readonly file: string | undefined;
  readonly variable: string | undefined;
  readonly set: string | undefined;
  readonly env: Environment;
}): string | undefined {
  const path = file ?? (set === undefined ? env[`${variable}_FILE`] || undefined : undefined);
  if (path === undefined) return set;
  const text = readFileSync(path, "utf8").replace(/\r?\n$/, "");
  if (text === "") throw new UsageError(`${path} is empty`);
  return text;
}

function checkOperands(command: Command, { operands, program }: Typed): void {
  const expected = command.operands ?? [];
  const missing = expected[operands.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing`);
  const extra = operands[expected.length];
  if (command.takesProgram !== true) {
    if (extra !== undefined) throw new UsageError(`${extra} is one argument too many`);
    return;
  }
  if (extra !== undefined) throw new UsageError(`${extra} is no option. COMMAND comes after --`);
  if (program.length === 0) throw new UsageError("-- COMMAND is missing: the program to run");
}
