import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Database } from "better-sqlite3";
import { copyLog } from "./copy-log.ts";

/** Fewer changed rows than this stay in the log: most writes of a quiet server change the same pages again. */
const changesMin = 250;
/** From the first commit after a copy to the next copy: the longer, the more changes of a page are copied as one. */
const pauseMs = 50;
/** In pages of 4 KiB. */
const logMax = 8_000;

/**
 * Copies the log into the database's file from a thread of its own. A commit that does so holds up everyone for some
 * 40 ms. The log begins anew only where all of it has been copied and nobody wrote meanwhile; so once it is long, the
 * little that came during the thread's copy is copied between two commits.
 */
export class Checkpoints implements AsyncDisposable {
  readonly #connection: Database;
  readonly #readChanges: () => number;
  #worker: Worker | undefined;
  #changesCopied = 0;
  #isUnderWay = false;
  #hasEnded = false;

  constructor(connection: Database) {
    this.#connection = connection;
    const changes = connection.prepare<[], number>("SELECT total_changes()").pluck();
    this.#readChanges = () => changes.get() ?? 0;
  }

  /** To be called after each commit. */
  committed(): void {
    if (this.#isUnderWay || this.#hasEnded) return;
    const changes = this.#readChanges();
    if (changes - this.#changesCopied < changesMin) return;
    this.#changesCopied = changes;
    this.#isUnderWay = true;
    setTimeout(() => this.#begin(), pauseMs).unref();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hasEnded = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.ref();
    worker.postMessage("end");
    await new Promise((resolve) => worker.once("exit", resolve));
  }

  #begin(): void {
    if (this.#hasEnded) return;
    this.#worker ??= this.#start();
    this.#worker.postMessage("copy");
  }

  #copied(logPages: number): void {
    if (this.#hasEnded) return;
    if (logPages > logMax) copyLog(this.#connection);
    this.#isUnderWay = false;
    this.committed();
  }

  #start(): Worker {
    // Beside this module, in a checkout as in a bundle.
    const module = new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url);
    const worker = new Worker(module, { workerData: this.#connection.name, execArgv: [] });
    worker.unref();
    worker.on("message", (logPages: number) => this.#copied(logPages));
    // Without the thread the commits copy the log themselves, at its greatest length.
    worker.once("error", () => {
      this.#worker = undefined;
      this.#hasEnded = true;
    });
    return worker;
  }
}
