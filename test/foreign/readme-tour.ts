/** One command of the README's tour, and what it prints there. */
export interface TourStep {
  readonly command: string;
  readonly output: string;
}

/** The commands of all `console` blocks, in their order. */
export function readTour(markdown: string): TourStep[] {
  const blocks = [...markdown.matchAll(/```console\n([\s\S]*?)```/g)].map(
    ([, block = ""]) => block,
  );
  return blocks.flatMap(readBlock).filter(({ command }) => command !== "");
}

function readBlock(block: string): TourStep[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const lines = part.split("\n");
      const count = commandLines(lines);
      return {
        command: lines.slice(0, count).join("\n"),
        output: lines.slice(count).join("\n").trimEnd(),
      };
    });
}

/** A command goes on while a single quote is open. */
function commandLines(lines: readonly string[]): number {
  let quotes = 0;
  for (const [i, line] of lines.entries()) {
    quotes += line.split("'").length - 1;
    if (quotes % 2 === 0) return i + 1;
  }
  return lines.length;
}

const changing: readonly (readonly [RegExp, string])[] = [
  [/(wf|ex)_[0-9a-z]{26}/g, "$1_ID"],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME"],
  [/\b1[78]\d{14}\b/g, "CURSOR"],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/g, "EPOCH"],
  [/completed in \d+ ms/g, "completed in N ms"],
  [/127\.0\.0\.1:\d+/g, "HOST"],
];

/** A text without what differs from run to run. */
export function settled(text: string): string {
  return changing.reduce((all, [pattern, word]) => all.replaceAll(pattern, word), text.trim());
}

/** Ids of the README, by the real ones of this run. */
export class TourIds {
  readonly #real = new Map<string, string>();

  /** The ids that stand at the same places. */
  learn(expected: string, actual: string): void {
    const real = [...actual.matchAll(ids)].map(([id]) => id);
    for (const [i, [id]] of [...expected.matchAll(ids)].entries()) {
      const found = real[i];
      if (found !== undefined && !this.#real.has(id)) this.#real.set(id, found);
    }
  }

  translate(command: string): string {
    return command.replaceAll(ids, (id) => this.#real.get(id) ?? id);
  }
}

/** A cursor is what a stream is gone on with. */
const ids = /(?:wf|ex)_[0-9a-z]{26}|\b1[78]\d{14}\b/g;
