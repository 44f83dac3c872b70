import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** What h2load reports of a run. */
export interface H2loadReport {
  readonly perSecond: number;
  /** Answers with a 2xx status. */
  readonly succeeded: number;
  /** Answers with another status, requests that failed or got no answer. */
  readonly failed: number;
  /** Of all bodies. */
  readonly bodyBytes: number;
}

export interface H2loadRun {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Path of a file that is sent as each body; none: GET. */
  readonly bodyFile?: string;
  readonly http1: boolean;
  readonly connections: number;
  /** Requests at a time on each connection. */
  readonly streams: number;
  readonly seconds: number;
}

export const h2loadMissing =
  "h2load is not installed: apt-get install nghttp2-client (Debian, Ubuntu), brew install nghttp2 (macOS)";

const run = promisify(execFile);

export async function hasH2load(): Promise<boolean> {
  return run("h2load", ["--version"]).then(
    () => true,
    () => false,
  );
}

/** Loads a server and reads the report. Rejects when h2load fails. */
export async function h2load(asked: H2loadRun): Promise<H2loadReport> {
  const { url, headers, bodyFile, http1, connections, streams, seconds } = asked;
  const { stdout } = await run("h2load", [
    ...(http1 ? ["--h1"] : []),
    ...["-c", `${connections}`, "-m", `${streams}`, "-D", `${seconds}`],
    ...(bodyFile === undefined ? [] : ["-d", bodyFile]),
    ...Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]),
    url,
  ]);
  return parseH2load(stdout);
}

/** Throws when the text is not a report. */
export function parseH2load(text: string): H2loadReport {
  const number = (pattern: RegExp) => {
    const [, found] = pattern.exec(text) ?? [];
    if (found === undefined) throw new Error(`h2load reports no ${pattern}:\n${text}`);
    return Number(found);
  };
  const succeeded = number(/(\d+) succeeded/);
  return {
    perSecond: number(/, ([\d.]+) req\/s/),
    succeeded,
    failed:
      number(/(\d+) failed/) + number(/(\d+) errored/) + number(/(\d+) timeout/) + not2xx(text),
    bodyBytes: number(/\((\d+)\) data/),
  };
}

function not2xx(text: string): number {
  const [, ...counts] = /^status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/m.exec(text) ?? [];
  if (counts.length === 0) throw new Error(`h2load reports no status codes:\n${text}`);
  return counts.reduce((sum, count) => sum + Number(count), 0);
}
