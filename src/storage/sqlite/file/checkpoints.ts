import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Database } from "better-sqlite3";
import { checkpointPages } from "./connection.ts";
import { copyLog, type LogState, longLogPages } from "./copy-log.ts";

/** So many changed rows are copied soon; fewer at leisure, for they often change again. */
const manyChanges = 250;
const soonMs = 50;
const leisureMs = 1_000;
/** Where more is left, somebody still reads by the file: it is for another time. */
const littlePages = 2_000;
/** With the thread, commits copy a log of so many pages only: it cannot follow then. */
const aidedPages = 40_000;
/** In a checkout as in a bundle. */
const besideThis = new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url);

/**
 * Copies the log into the database's file from a thread of its own. A commit that does so holds up
 * everyone for some 40 ms. The log begins anew only where all of it has been copied and nobody wrote
 * meanwhile; so once it is long, the little that came during the thread's copy is copied between two
 * commits.
 */
export class Checkpoints implements AsyncDisposable {
  readonly #connection: Database;
  readonly #module: URL;
  readonly #readChanges: () => number;
  #worker: Worker | undefined;
  #exit: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isSoon = false;
  #isCopying = false;
  #hasEnded = false;
  #changesCopied = 0;

  constructor(connection: Database, module = besideThis) {
    this.#connection = connection;
    this.#module = module;
    connection.pragma(`wal_autocheckpoint = ${aidedPages}`);
    const changes = connection.prepare<[], number>("SELECT total_changes()").pluck();
    this.#readChanges = () => changes.get() ?? 0;
  }

  /** To be called after each commit. */
  committed(): void {
    if (this.#isCopying || this.#isSoon || this.#hasEnded) return;
    const changes = this.#readChanges() - this.#changesCopied;
    const isSoon = changes >= manyChanges;
    if (changes === 0 || (this.#timer !== undefined && !isSoon)) return;
    clearTimeout(this.#timer);
    this.#isSoon = isSoon;
    this.#timer = setTimeout(() => this.#begin(), isSoon ? soonMs : leisureMs).unref();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.#worker?.ref();
    this.#worker?.postMessage("end");
    return this.#exit;
  }

  #begin(): void {
    this.#timer = undefined;
    this.#isSoon = false;
    this.#isCopying = true;
    this.#changesCopied = this.#readChanges();
    try {
      this.#worker ??= this.#start();
      this.#worker.postMessage("copy");
    } catch {
      this.#goUnaided();
    }
  }

  #copied({ length, left }: LogState): void {
    if (this.#hasEnded) return;
    if (length > longLogPages && left < littlePages) copyLog(this.#connection);
    this.#isCopying = false;
    this.committed();
  }

  #start(): Worker {
    const worker = new Worker(this.#module, { workerData: this.#connection.name, execArgv: [] });
    worker.unref();
    worker.on("message", (state: LogState) => this.#copied(state));
    // It exits then.
    worker.on("error", () => {});
    this.#exit = new Promise<void>((resolve) => worker.once("exit", () => resolve())).then(() => {
      this.#worker = undefined;
      if (!this.#hasEnded) this.#goUnaided();
    });
    return worker;
  }

  /** For lack of a thread or of a file descriptor. */
  #goUnaided(): void {
    this.#hasEnded = true;
    this.#connection.pragma(`wal_autocheckpoint = ${checkpointPages}`);
  }
}
