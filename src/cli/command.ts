import type { OptionTable, Values } from "./options.ts";

/** What somebody can call, e.g. `serve` or `client add`. */
export interface Command<Table extends OptionTable = OptionTable> {
  /** The arguments that are no options, in their order, e.g. `NAME`. All are required. */
  readonly operands?: readonly string[];
  /** Whether `-- COMMAND …` ends the line, and must. */
  readonly takesProgram?: true;
  readonly options: Table;
  /** What help says beside the options. */
  readonly notes?: readonly string[];
  /** Does it. The exit code. */
  run(call: Call<Table>): Promise<number>;
}

/** One call of a command, read and checked against its table. */
export interface Call<Table extends OptionTable = OptionTable> {
  readonly values: Values<Table>;
  /** As many as the command has. */
  readonly operands: readonly string[];
  /** What came after `--`. */
  readonly program: readonly string[];
}

/** Lets the table decide the types of the values that `run` gets. */
export function defineCommand<const Table extends OptionTable>(command: Command<Table>): Command {
  return command;
}
