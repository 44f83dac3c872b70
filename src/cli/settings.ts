import { commands } from "./commands.ts";
import { argumentOf, type Option, placeholderOf, variableOf } from "./options.ts";

/** One setting of the program, for the README. */
export interface Setting {
  readonly commands: readonly string[];
  /** E.g. `--http-port PORT`. */
  readonly argument: string;
  /** E.g. `SEALFLOW_HTTP_PORT`; empty when only the argument sets it. */
  readonly variable: string;
  /** Empty: none. */
  readonly default: string;
  readonly help: string;
}

/** All options of all commands; what is the same for several commands is one setting. */
export async function listSettings(): Promise<readonly Setting[]> {
  const settings = new Map<string, Setting>();
  for (const [command, entry] of commands) {
    const { options } = await entry.load();
    for (const [name, option] of Object.entries(options)) {
      const setting = settingOf(command, name, option);
      const key = JSON.stringify({ ...setting, commands: [] });
      const others = settings.get(key)?.commands ?? [];
      settings.set(key, { ...setting, commands: [...others, command] });
    }
  }
  return [...settings.values()];
}

/** The settings as a table of Markdown, as the README has it. */
export function settingsTable(settings: readonly Setting[]): string {
  const rows = settings.map(({ commands, argument, variable, default: preset, help }) =>
    [commands.join(", "), code(argument), code(variable), code(preset), help].map(cell).join(" | "),
  );
  const head = ["command | option | variable | default | meaning", "--- | --- | --- | --- | ---"];
  return [...head, ...rows].map((row) => `| ${row} |\n`).join("");
}

function settingOf(command: string, name: string, option: Option): Setting {
  return {
    commands: [command],
    argument: `${argumentOf(name, option)} ${placeholderOf(option)}`.trimEnd(),
    variable: variableOf(name, option) ?? "",
    default: option.default ?? option.otherwise ?? (option.required === true ? "required" : ""),
    help: option.help,
  };
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
