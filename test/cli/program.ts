import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface How {
  /** Where it runs; its data is `./data` there. */
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  /** A program that runs it, and its arguments. */
  readonly under?: readonly string[];
  /** Of the test's own context, which concurrent tests need. */
  readonly onTestFinished?: (cleanUp: () => Promise<void>) => void;
}

/** Runs the real program to its end. */
export async function sealflow(args: readonly string[], how: How): Promise<Ended> {
  const child = start([main, ...args], how);
  const { onTestFinished: whenFinished = onTestFinished } = how;
  whenFinished(async () => void child.kill("SIGKILL"));
  child.stdin?.on("error", () => {});
  child.stdin?.end(how.stdin ?? "");
  const { stdout, stderr } = pipesOf(child);
  const [out, err, code] = await Promise.all([text(stdout), text(stderr), exitOf(child)]);
  return { code, stdout: out, stderr: err };
}

/** The real program while it runs; killed when the test ends. */
export interface Running {
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly exited: Promise<number | null>;
  /** Resolves with the match once stdout and stderr hold one; rejects when the program ends first. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  send(signal: NodeJS.Signals): void;
}

export function startSealflow(args: readonly string[], how: How): Running {
  return startProgram([main, ...args], how);
}

/** A program for Node: its file, then its arguments. */
export function startProgram(command: readonly string[], how: How): Running {
  const child = start(command, how);
  const { onTestFinished: whenFinished = onTestFinished } = how;
  const { stdout, stderr } = pipesOf(child);
  const written = { out: "", err: "" };
  let looks: (() => void)[] = [];
  const look = () => {
    for (const each of looks) each();
  };
  stdout.setEncoding("utf8").on("data", (chunk: string) => {
    written.out += chunk;
    look();
  });
  stderr.setEncoding("utf8").on("data", (chunk: string) => {
    written.err += chunk;
    look();
  });
  const exited = exitOf(child);
  whenFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return {
    pid: child.pid ?? 0,
    stdout: () => written.out,
    stderr: () => written.err,
    exited,
    until(pattern) {
      return new Promise((resolve, reject) => {
        const find = () => {
          const match = pattern.exec(written.out) ?? pattern.exec(written.err);
          if (match === null) return;
          looks = looks.filter((each) => each !== find);
          resolve(match);
        };
        looks.push(find);
        find();
        exited.then((code) => {
          reject(new Error(`ended with ${code} before ${pattern}: ${written.out}${written.err}`));
        });
      });
    },
    send: (signal) => void child.kill(signal),
  };
}

/** A server on free ports with its data in `cwd`. */
export interface Served extends Running {
  /** E.g. `http://127.0.0.1:40001`. */
  readonly url: string;
  readonly httpPort: number;
  readonly grpcPort: number;
  /** Calls REST as `owner`; the answer's status and body. */
  call(token: string, path: string, body?: unknown): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server says
  readonly body: any;
}

export async function serve(how: How, args: readonly string[] = []): Promise<Served> {
  const running = startSealflow(["serve", "--http-port", "0", "--grpc-port", "0", ...args], how);
  const [, url = "", httpPort] = await running.until(/(http:\/\/[\d.]+:(\d+))\/api\/v1/);
  const [, grpcPort] = await running.until(/gRPC +[\d.]+:(\d+)/);
  await running.until(/get a token/);
  return {
    ...running,
    url,
    httpPort: Number(httpPort),
    grpcPort: Number(grpcPort),
    async call(token, path, body) {
      const response = await fetch(`${url}/api/v1${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "x-agent-id": "laptop",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    },
  };
}

/** A directory of its own for a test. */
export function newDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "sealflow-cli-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Asks until the answer is right, for at most a second. */
export async function withinASecond(isRight: () => Promise<boolean>): Promise<boolean> {
  const endMs = performance.now() + 1000;
  do {
    if (await isRight()) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (performance.now() < endMs);
  return false;
}

function start(command: readonly string[], { cwd, env, under = [] }: How): ChildProcess {
  const [program = "", ...args] = [...under, process.execPath, ...command];
  return spawn(program, args, {
    cwd,
    env: { PATH: process.env["PATH"], ...env },
    stdio: "pipe",
  });
}

function pipesOf({ stdout, stderr }: ChildProcess) {
  if (stdout === null || stderr === null) throw new Error("no pipes");
  return { stdout, stderr };
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    child.once("close", resolve);
  });
}
