import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const preload = fileURLToPath(new URL("unstable-time.ts", import.meta.url));

/** The program as it is in a checkout. */
export const ownMain = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Time that a server could not use, by this process' monotonic clock. */
export interface Outage {
  readonly fromMs: number;
  untilMs: number;
}

/** The real server in a process of its own, on the same ports through every restart. */
export class ServerProcess {
  readonly #main: string;
  readonly #dataDir: string;
  readonly #speed: number;
  #ports = { http: "0", grpc: "0" };
  #stepMs = 0;
  #child: ChildProcess | undefined;
  readonly outages: Outage[] = [];
  /** What it logged as its own fault, and how it ended when nobody had asked. */
  readonly faults: string[] = [];

  constructor(options: {
    readonly main: string;
    readonly dataDir: string;
    readonly speed: number;
  }) {
    this.#main = options.main;
    this.#dataDir = options.dataDir;
    this.#speed = options.speed;
  }

  get httpUrl(): string {
    return `http://127.0.0.1:${this.#ports.http}`;
  }

  get grpcUrl(): string {
    return `http://127.0.0.1:${this.#ports.grpc}`;
  }

  async start(): Promise<void> {
    const { http, grpc } = this.#ports;
    const limits = "workflows=off,sync=off,agents=off,executions=off,tasks=off";
    const args = [
      ...["--import", preload, this.#main, "serve", "--data-dir", this.#dataDir],
      ...["--http-port", http, "--grpc-port", grpc, "--rate-limits", limits],
    ];
    const child = spawn(process.execPath, args, {
      env: {
        PATH: process.env["PATH"],
        TIME_SPEED: String(this.#speed),
        TIME_STEP_MS: String(this.#stepMs),
      },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.#child = child;
    const lines: string[] = [];
    const ready = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) throw new Error("no pipe");
      createInterface(stream).on("line", (line) => {
        if (lines.length < 50) lines.push(line);
        if (line.includes('"level":"error"')) this.faults.push(line);
        if (/get a token/.test(line)) ready.resolve();
      });
    }
    child.once("exit", (code, signal) => {
      if (signal === "SIGKILL") return;
      this.faults.push(`ended with ${code ?? signal}: ${lines.join(" ")}`);
      ready.reject(new Error(`the server ended: ${lines.join("\n")}`));
    });
    await ready.promise;
    const said = lines.join("\n");
    this.#ports = {
      http: /http:\/\/[\d.]+:(\d+)\/api/.exec(said)?.[1] ?? http,
      grpc: /gRPC +[\d.]+:(\d+)/.exec(said)?.[1] ?? grpc,
    };
  }

  /** As a power cut would, without a word; and again. */
  async killAndRestart(): Promise<void> {
    const outage = this.#beginOutage();
    await this.kill();
    await this.start();
    outage.untilMs = performance.now();
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Stops it in the middle of whatever it does, for so long. */
  async pause(ms: number): Promise<void> {
    const outage = this.#beginOutage();
    this.#child?.kill("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.#child?.kill("SIGCONT");
    outage.untilMs = performance.now();
  }

  /** Sets its wall clock so far off; what is monotonic goes on. */
  stepClock(stepMs: number): void {
    this.#stepMs = stepMs;
    this.#child?.send({ stepMs });
  }

  #beginOutage(): Outage {
    const outage = { fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY };
    this.outages.push(outage);
    return outage;
  }
}
