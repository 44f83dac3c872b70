import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

/** A Node process whose output goes into files of a folder. */
export class Child implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly #ended: Promise<unknown>;

  /** `stdout`: a pipe for who reads it; or a file, as a log has it, and messages come instead. */
  constructor(
    args: readonly string[],
    how: { readonly folder: string; readonly stdout: "pipe" | "file" },
  ) {
    const out = openSync(join(how.folder, "out.log"), "a");
    const errors = openSync(join(how.folder, "errors.log"), "a");
    const options: SpawnOptions = {
      cwd: how.folder,
      env: { PATH: process.env["PATH"] },
      stdio: how.stdout === "pipe" ? ["ignore", "pipe", errors] : ["ignore", out, errors, "ipc"],
    };
    this.process = spawn(process.execPath, args, options);
    this.#ended = once(this.process, "exit");
    closeSync(out);
    closeSync(errors);
  }

  get pid(): number {
    if (this.process.pid === undefined) throw new Error("the process did not start");
    return this.process.pid;
  }

  /** Rejects when the process ends before `ready` resolves. */
  async until<T>(ready: Promise<T>): Promise<T> {
    const died = this.#ended.then(() => {
      throw new Error(`${this.process.spawnargs.join(" ")} ended with ${this.process.exitCode}`);
    });
    return Promise.race([ready, died]);
  }

  /** Asks it to end, and waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.exitCode === null) this.process.kill("SIGTERM");
    const patience = setTimeout(() => this.process.kill("SIGKILL"), endMs);
    await this.#ended;
    clearTimeout(patience);
  }
}

const endMs = 20_000;
