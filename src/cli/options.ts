/** One setting of a command. Its key in the table, in camelCase, gives its names. */
export interface Option {
  /**
   * - `text`: a value
   * - `flag`: yes or no
   * - `list`: values, split at commas or the option repeated
   * - `secret`: a value from a variable or a file, never from an argument
   */
  readonly kind: "text" | "flag" | "list" | "secret";
  /** What stands for the value in help, e.g. `PORT`. */
  readonly placeholder?: string;
  /** One sentence without its full stop. */
  readonly help: string;
  readonly default?: string;
  /** In place of a default that is no fixed value, what holds without the option. For help only. */
  readonly otherwise?: string;
  readonly required?: true;
  /** Belongs to one call, so that no variable sets it. */
  readonly argumentOnly?: true;
}

export type OptionTable = Readonly<Record<string, Option>>;

type Value<O extends Option> = O extends { readonly kind: "flag" }
  ? boolean
  : O extends { readonly kind: "list" }
    ? readonly string[]
    : O extends { readonly default: string } | { readonly required: true }
      ? string
      : string | undefined;

/** What a command is told by the options of its table. */
export type Values<Table extends OptionTable> = {
  readonly [Name in keyof Table]: Value<Table[Name]>;
};

/** The argument that sets it, e.g. `--http-port`. A secret's names a file. */
export function argumentOf(name: string, { kind }: Option): string {
  const kebab = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return kind === "secret" ? `--${kebab}-file` : `--${kebab}`;
}

/** The variable that sets it, e.g. `SEALFLOW_HTTP_PORT`; undefined when none does. */
export function variableOf(name: string, { argumentOnly }: Option): string | undefined {
  if (argumentOnly === true) return undefined;
  return `SEALFLOW_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** What stands for the value in help; empty for a flag. */
export function placeholderOf({ kind, placeholder }: Option): string {
  if (kind === "flag") return "";
  return kind === "secret" ? "PATH" : (placeholder ?? "VALUE");
}
