import { resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Settings } from "./scenario.ts";

/** What `npm run bench` is told. */
export interface Options {
  readonly task: "run" | "list" | "help";
  /** The scenarios to run, in this order; empty: all. */
  readonly only: readonly string[];
  /** Where the results are written; undefined: into bench/results/. */
  readonly json: string | undefined;
  readonly settings: Settings;
}

/** The command line is wrong; the text says how. */
export class OptionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "OptionError";
  }
}

export const usage = `npm run bench -- [OPTIONS]

Measures Sealflow as shipped, and its peers, side by side on this machine.

  --only NAME        this scenario alone; may be repeated
  --list             list the scenarios
  --rounds N         how often each is measured, in turns (5)
  --seconds N        how long a round lasts (5)
  --minutes N        how long the soak lasts (10)
  --sizes N,N,...    how many rows scale fills in (1000,100000,1000000)
  --json PATH        where the results go (bench/results/TIME.json)
  --cpu-prof DIR     also write CPU profiles of Sealflow; its figures are lower then
`;

/** Throws OptionError. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parse(args);
  const profiles = values["cpu-prof"];
  return {
    task: values.help ? "help" : values.list ? "list" : "run",
    only: values.only,
    json: values.json,
    settings: {
      rounds: readCount("--rounds", values.rounds),
      seconds: readCount("--seconds", values.seconds),
      minutes: readCount("--minutes", values.minutes),
      sizes: values.sizes.split(",").map((size) => readCount("--sizes", size)),
      profiles: profiles === undefined ? undefined : resolve(profiles),
    },
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        only: { type: "string", multiple: true, default: [] },
        list: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "5" },
        minutes: { type: "string", default: "10" },
        sizes: { type: "string", default: "1000,100000,1000000" },
        json: { type: "string" },
        "cpu-prof": { type: "string" },
      },
    });
  } catch (cause) {
    throw new OptionError(cause instanceof Error ? cause.message : String(cause));
  }
}

function readCount(name: string, text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new OptionError(`${name} must be a whole number above 0, not ${text}`);
}
