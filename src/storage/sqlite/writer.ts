import type { Database } from "better-sqlite3";
import { ServiceError } from "../../domain/errors.ts";

/** Writes one after another, several to a commit. */
export interface Writer {
  /**
   * Runs `work` in a transaction, in a savepoint of its own, and resolves after the commit. All
   * writes that arrive in one turn of the event loop share one commit. Work that throws is undone
   * alone and rejects with what it threw; UNAVAILABLE when the store is locked, full or failing.
   * `work` must be synchronous and must not write through the writer itself.
   */
  write<T>(work: () => T): Promise<T>;
  /**
   * Runs `work` between two commits: it sees what is durable, in one snapshot. UNAVAILABLE when the
   * store is locked, failing or closed.
   */
  read<T>(work: () => T): Promise<T>;
  /** False once the file has failed for good; then every write is refused. */
  isWritable(): boolean;
  /** Resolves with the cause when the file fails for good. */
  readonly failed: Promise<unknown>;
  /** Commits what waits, then refuses. */
  close(): Promise<void>;
}

interface Job {
  readonly work: () => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (cause: unknown) => void;
}

type Verdict = { readonly value: unknown } | { readonly cause: unknown };

const groupSizeMax = 256;
const groupMs = 5;
const waitingMax = 20_000;
const busyRetryMs = 10;
const busyGiveUpMs = 5_000;
/** The file is broken: no write can be trusted any more. */
const fatalCodes = /^SQLITE_(IOERR|CORRUPT|NOTADB|READONLY)/;
const outsideCodes = /^SQLITE_(FULL|IOERR|CORRUPT|NOTADB|READONLY|BUSY|LOCKED|NOMEM|CANTOPEN)/;

/** `committed` is called after each group of writes, whatever became of it. */
export function createWriter(db: Database, committed: () => void = () => {}): Writer {
  const group = createGroup(db);
  const waiting: Job[] = [];
  let scheduled = false;
  let flushing = false;
  let closed = false;
  const failure = Promise.withResolvers<unknown>();
  let failed = false;
  let busySince: number | undefined;
  let drained: (() => void) | undefined;

  function schedule(pauseMs = 0): void {
    scheduled = true;
    if (pauseMs === 0) setImmediate(flush);
    else setTimeout(flush, pauseMs);
  }

  function flush(): void {
    scheduled = false;
    if (waiting.length > 0 && start()) runGroup();
    if (waiting.length > 0 && !scheduled) schedule();
    if (waiting.length === 0) drained?.();
  }

  /** Begins the transaction; on a foreign lock tries again from a timer, for a while. */
  function start(): boolean {
    try {
      group.begin();
      busySince = undefined;
      return true;
    } catch (cause) {
      const now = performance.now();
      busySince ??= now;
      if (codeOf(cause).startsWith("SQLITE_BUSY") && now - busySince < busyGiveUpMs) {
        schedule(busyRetryMs);
        return false;
      }
      busySince = undefined;
      rejectAll(waiting.splice(0), cause);
      noteFailure(cause);
      return false;
    }
  }

  function runGroup(): void {
    const jobs: Job[] = [];
    const verdicts: Verdict[] = [];
    const began = performance.now();
    flushing = true;
    try {
      while (jobs.length < groupSizeMax && performance.now() - began < groupMs) {
        const job = waiting.shift();
        if (job === undefined) break;
        jobs.push(job);
        verdicts.push(group.run(job.work));
        if (!db.inTransaction) break;
      }
    } finally {
      flushing = false;
    }
    const ended = group.end(verdicts);
    settle(jobs, verdicts, ended);
    committed();
    for (const verdict of [...verdicts, ended]) if ("cause" in verdict) noteFailure(verdict.cause);
  }

  function noteFailure(cause: unknown): void {
    const origin = cause instanceof ServiceError ? cause.facts.cause : cause;
    if (!fatalCodes.test(codeOf(origin))) return;
    failed = true;
    failure.resolve(origin);
    rejectAll(waiting.splice(0), origin);
  }

  return {
    write(work) {
      if (flushing) throw new Error("a write inside a write");
      if (closed || failed) return Promise.reject(unavailable("The store is closed"));
      if (waiting.length >= waitingMax) return Promise.reject(unavailable("Too many writes wait"));
      return new Promise((resolve, reject) => {
        waiting.push({ work, resolve, reject });
        if (!scheduled) schedule();
      });
    },

    async read(work) {
      if (!db.open) throw unavailable("The store is closed");
      try {
        return work();
      } catch (cause) {
        throw translate(cause);
      }
    },

    isWritable: () => !closed && !failed,

    failed: failure.promise,

    close() {
      closed = true;
      if (waiting.length === 0) return Promise.resolve();
      return new Promise((resolve) => {
        drained = resolve;
      });
    },
  };
}

/** The transaction of a group, each work in a savepoint of its own. */
interface Group {
  begin(): void;
  run(work: () => unknown): Verdict;
  /** Commits. SQLite itself may have rolled the whole group back at the last work. */
  end(verdicts: readonly Verdict[]): Verdict;
}

function createGroup(db: Database): Group {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  const savepoint = db.prepare("SAVEPOINT job");
  const release = db.prepare("RELEASE job");
  const undo = db.prepare("ROLLBACK TO job");
  return {
    begin() {
      begin.run();
    },
    run(work) {
      try {
        savepoint.run();
        const value = work();
        if (value instanceof Promise) throw new TypeError("a write must be synchronous");
        release.run();
        return { value };
      } catch (cause) {
        if (db.inTransaction) {
          undo.run();
          release.run();
        }
        return { cause: translate(cause) };
      }
    },
    end(verdicts) {
      try {
        if (!db.inTransaction) throw lastCause(verdicts);
        commit.run();
        return { value: undefined };
      } catch (cause) {
        if (db.inTransaction) rollback.run();
        return { cause };
      }
    },
  };
}

/** Answers each job; `ended` is what became of the whole group. */
function settle(jobs: readonly Job[], verdicts: readonly Verdict[], ended: Verdict): void {
  for (const [i, job] of jobs.entries()) {
    const verdict = verdicts[i] ?? ended;
    if ("cause" in verdict) job.reject(verdict.cause);
    else if ("cause" in ended) job.reject(unavailable("The commit failed", ended.cause));
    else job.resolve(verdict.value as never);
  }
}

function rejectAll(jobs: readonly Job[], cause: unknown): void {
  for (const job of jobs) job.reject(unavailable("The store cannot be written now", cause));
}

function lastCause(verdicts: readonly Verdict[]): unknown {
  const last = verdicts.at(-1);
  return last !== undefined && "cause" in last ? last.cause : new Error("no transaction");
}

/** A failure of the file is UNAVAILABLE; anything else stays what it is. */
function translate(cause: unknown): unknown {
  return outsideCodes.test(codeOf(cause))
    ? unavailable("The store cannot be written now", cause)
    : cause;
}

function unavailable(message: string, cause?: unknown): ServiceError {
  return new ServiceError("UNAVAILABLE", message, { retryAfterMs: 1000, cause });
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}
