import type { Closers } from "../src/closers.ts";
import type { Table } from "./measure/table.ts";

/** One thing that is measured. */
export interface Scenario {
  /** As `--only` names it. */
  readonly name: string;
  /** One line for `--list`. */
  readonly about: string;
  /** Whether it drives its load with h2load. */
  readonly usesH2load: boolean;
  run(bench: Bench): Promise<Finding>;
}

/** What a scenario is given. Whatever it opens ends with `closers`. */
export interface Bench {
  readonly settings: Settings;
  /** The file that Node runs as `sealflow`, of the package as it is published. */
  readonly command: string;
  /** Empty, and gone when the scenario has ended. */
  readonly folder: string;
  readonly closers: Closers;
  /** Tells how far it is; no part of the result. */
  say(text: string): void;
}

export interface Settings {
  /** How often each contender is measured, in turns. */
  readonly rounds: number;
  /** How long one round lasts. */
  readonly seconds: number;
  /** How long the soak lasts. */
  readonly minutes: number;
  /** How many rows the scale scenario fills in, in turn. */
  readonly sizes: readonly number[];
  /** Where Sealflow writes CPU profiles (`node --cpu-prof`); undefined: it is not profiled. */
  readonly profiles: string | undefined;
}

/** What a scenario found. */
export interface Finding {
  readonly tables: readonly Table[];
  /** What a reader must know to judge the tables, e.g. rounds that did not count. */
  readonly notes: readonly string[];
  /** Every single measurement by what it is, its unit in the name, for the JSON. */
  readonly series: Readonly<Record<string, readonly number[]>>;
}
