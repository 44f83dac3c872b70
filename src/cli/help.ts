import type { Command } from "./command.ts";
import type { CommandEntry } from "./commands.ts";
import { argumentOf, type Option, placeholderOf, variableOf } from "./options.ts";

const columns = 100;

/** What `sealflow help` prints. */
export function overview(commands: ReadonlyMap<string, CommandEntry>): string {
  const rows = [...commands].map(([name, { summary }]) => [name, summary] as const);
  return [
    "Sealflow runs encrypted workflows on agents and keeps encrypted state in step everywhere.",
    "",
    "Usage: sealflow COMMAND [options]",
    "",
    "Commands",
    ...table(rows),
    "",
    "sealflow COMMAND --help says more of one, sealflow --version the version.",
    "An option can be a variable unless its help says no: --http-port is SEALFLOW_HTTP_PORT. The",
    "option wins. A secret: SEALFLOW_KEY, or its file's path in SEALFLOW_KEY_FILE or --key-file.",
    "SEALFLOW_DEBUG=1 adds the whole error to a failure.",
    "",
  ].join("\n");
}

/** What `sealflow NAME --help` prints. */
export function commandHelp(name: string, { summary }: CommandEntry, command: Command): string {
  const options = Object.entries(command.options);
  const secrets = options.filter(([, { kind }]) => kind === "secret");
  const plain = options.filter(([, { kind }]) => kind !== "secret");
  return [
    `sealflow ${name}: ${summary}`,
    "",
    `Usage: ${usageOf(name, command)}`,
    ...section("Options", [...plain.map(optionRow), ["--help", "print this"]]),
    ...section("Secrets, by variable or file", secrets.flatMap(secretRows)),
    ...(command.notes ?? []).flatMap((note) => ["", ...wrap(note, columns)]),
    "",
  ].join("\n");
}

function usageOf(name: string, { operands = [], options, takesProgram }: Command): string {
  const required = Object.entries(options).filter(([, option]) => option.required === true);
  return [
    "sealflow",
    name,
    ...operands,
    ...required.map(([key, option]) => `${argumentOf(key, option)} ${placeholderOf(option)}`),
    "[options]",
    ...(takesProgram === true ? ["-- COMMAND …"] : []),
  ].join(" ");
}

type Row = readonly [string, string];

function section(title: string, rows: readonly Row[]): readonly string[] {
  return rows.length === 0 ? [] : ["", title, ...table(rows)];
}

function optionRow([name, option]: readonly [string, Option]): Row {
  const argument = `${argumentOf(name, option)} ${placeholderOf(option)}`.trimEnd();
  const facts = [
    ...(option.kind === "list" ? ["repeatable"] : []),
    ...(option.required === true ? ["required"] : []),
    ...defaultWords(option),
    ...(option.argumentOnly === true ? ["no variable"] : []),
  ];
  return [argument, `${option.help}${facts.length === 0 ? "" : ` (${facts.join("; ")})`}`];
}

function defaultWords(option: Option): readonly string[] {
  const words = option.default ?? option.otherwise;
  return words === undefined ? [] : [`default ${words}`];
}

function secretRows([name, option]: readonly [string, Option]): readonly Row[] {
  return [
    [variableOf(name, option) ?? "", option.help],
    [`${argumentOf(name, option)} PATH`, "the same, from a file"],
  ];
}

/** Two columns; what is too long for the second goes on below. */
function table(rows: readonly Row[]): readonly string[] {
  const width = Math.max(...rows.map(([left]) => left.length)) + 4;
  return rows.flatMap(([left, right]) =>
    wrap(right, columns - width).map((line, i) => {
      const start = i === 0 ? `  ${left}` : "";
      return `${start.padEnd(width)}${line}`;
    }),
  );
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
