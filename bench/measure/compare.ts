import { VoidRound } from "../load/closed-loop.ts";
import type { Bench, Finding } from "../scenario.ts";
import type { Server } from "../servers/server.ts";
import { median, spreadOf } from "./stats.ts";
import { figure, type Table } from "./table.ts";
import { usageOf } from "./usage.ts";

/** One of those that are compared; the first is measured against each of the others. */
export interface Contender {
  readonly server: Server;
  /** Makes the call as an ordinary client and looks at the answer. Throws when it is not right. */
  verify(): Promise<void>;
  /** Loads the server for so long. Throws VoidRound when an answer was not right. */
  load(seconds: number): Promise<{ readonly count: number; readonly perSecond: number }>;
}

interface Round {
  readonly perSecond: number;
  /** CPU time of the server for one of what is counted. */
  readonly cpuUs: number;
  /** Of one core, the server's share. */
  readonly serverShare: number;
  /** Of one core, this process's share: near 1, the generator was the limit. */
  readonly ownShare: number;
}

const legend =
  "Ratios are Sealflow's figure by that of the row. CPU: the server's process; others disturb it less.";
const warmUpSeconds = 3;
const busyShare = 0.9;
/** A server that used less than this of a core was not what limited it. */
const idleShare = 0.75;

/**
 * Measures all of them in turns, A B C A B C …, so that what else the machine does meets them alike.
 * A ratio is the median of the ratios within each turn. The first contender is Sealflow. `unit`: what
 * is counted.
 */
export async function compare(
  bench: Bench,
  {
    title,
    unit,
    contenders,
  }: {
    readonly title: string;
    readonly unit: string;
    readonly contenders: readonly Contender[];
  },
): Promise<Finding> {
  const { rounds, seconds } = bench.settings;
  const notes: string[] = [];
  const turns: (readonly Round[])[] = [];
  for (const contender of contenders) {
    await contender.verify();
    await contender.load(Math.min(warmUpSeconds, seconds));
  }
  for (let turn = 1; turn <= rounds; turn += 1) {
    bench.say(`${title}: round ${turn} of ${rounds}`);
    try {
      turns.push(await measureAll(contenders, seconds));
    } catch (cause) {
      if (!(cause instanceof VoidRound)) throw cause;
      notes.push(`Round ${turn} does not count: ${cause.message}.`);
    }
  }
  if (turns.length === 0) throw new Error(`${title}: no round counts. ${notes.join(" ")}`);
  const columns = contenders.map(({ server }, i) => ({
    name: server.name,
    rounds: turns.flatMap((turn) => turn[i] ?? []),
  }));
  return {
    tables: [comparison({ title, unit }, columns)],
    notes: [legend, ...notes, ...columns.flatMap(({ name, rounds: its }) => doubts(name, its))],
    series: Object.fromEntries(columns.flatMap(seriesOf)),
  };
}

export function wrongAnswer({ name }: Server): Error {
  return new Error(`${name} does not answer what it was asked`);
}

interface Column {
  readonly name: string;
  readonly rounds: readonly Round[];
}

async function measureAll(contenders: readonly Contender[], seconds: number): Promise<Round[]> {
  const rounds: Round[] = [];
  for (const contender of contenders) {
    rounds.push(await measure(contender, seconds));
    await contender.verify();
  }
  return rounds;
}

async function measure({ server, load }: Contender, seconds: number): Promise<Round> {
  const ownBefore = process.cpuUsage();
  const before = await usageOf(server.pid);
  const beganMs = performance.now();
  const { count, perSecond } = await load(seconds);
  const tookMs = performance.now() - beganMs;
  const { cpuMs } = await usageOf(server.pid);
  const own = process.cpuUsage(ownBefore);
  const usedMs = cpuMs - before.cpuMs;
  return {
    perSecond,
    cpuUs: (usedMs * 1000) / count,
    serverShare: usedMs / tookMs,
    ownShare: (own.user + own.system) / 1000 / tookMs,
  };
}

function comparison(
  { title, unit }: { readonly title: string; readonly unit: string },
  columns: readonly Column[],
): Table {
  const first = columns[0]?.rounds ?? [];
  return {
    title,
    head: ["", `${unit}/s`, "min", "max", "rate ratio", `CPU us a ${unit}`, "CPU ratio", "CPU %"],
    rows: columns.map(({ name, rounds }) => {
      const rate = spreadOf(rounds.map(({ perSecond }) => perSecond));
      const ratios = rounds.map(({ perSecond }, i) => (first[i]?.perSecond ?? 0) / perSecond);
      const cpuRatios = rounds.map(({ cpuUs }, i) => (first[i]?.cpuUs ?? 0) / cpuUs);
      return [
        name,
        figure(rate.median),
        figure(rate.min),
        figure(rate.max),
        rounds === first ? "" : `x ${median(ratios).toFixed(2)}`,
        figure(median(rounds.map(({ cpuUs }) => cpuUs))),
        rounds === first ? "" : `x ${median(cpuRatios).toFixed(2)}`,
        figure(100 * median(rounds.map(({ serverShare }) => serverShare))),
      ];
    }),
  };
}

function doubts(name: string, rounds: readonly Round[]): string[] {
  const own = median(rounds.map(({ ownShare }) => ownShare));
  const server = median(rounds.map(({ serverShare }) => serverShare));
  return [
    ...(own > busyShare
      ? [`${name}: the generator used ${percent(own)} and may be the limit.`]
      : []),
    ...(server < idleShare
      ? [`${name}: the server used ${percent(server)}; the disk or other work was the limit.`]
      : []),
  ];
}

function percent(share: number): string {
  return `${Math.round(100 * share)} % of a core`;
}

function seriesOf({ name, rounds }: Column): [string, readonly number[]][] {
  return [
    [`${name} perSecond`, rounds.map(({ perSecond }) => perSecond)],
    [`${name} cpuUs`, rounds.map(({ cpuUs }) => cpuUs)],
    [`${name} serverShare`, rounds.map(({ serverShare }) => serverShare)],
    [`${name} generatorShare`, rounds.map(({ ownShare }) => ownShare)],
  ];
}
