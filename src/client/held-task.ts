import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Task } from "../../gen/sealflow/v1/task_pb.ts";
import { type AbortWhy, TaskAbortedError } from "./agent-task.ts";

/** Progress on its way to the server. */
export interface PendingProgress {
  readonly text: string;
  readonly done: PromiseWithResolvers<void>;
}

/** One granted attempt, from its receipt to the end of its report. */
export class HeldTask {
  readonly task: Task;
  readonly receivedAtMs: number;
  /** Resolves when nobody waits for the handler any more. */
  readonly abandoned: Promise<void>;
  /** How progress is written; sealed tasks put a seal here. */
  encodeProgress: (text: string) => Promise<string> = async (text) => text;
  /** Set by the heartbeats: stores progress soon. */
  onProgress: () => void = () => {};
  /** Set by the runtime. */
  onStop: (why: AbortWhy) => void = () => {};

  #leaseEndsAtMs = 0;
  #leaseTimer: ReturnType<typeof setTimeout> | undefined;
  #progress: PendingProgress | undefined;
  #isLost = false;
  #isLostByServer = false;
  #isEnded = false;
  #stoppedWhy: AbortWhy | undefined;
  readonly #controller = new AbortController();
  readonly #abandonment = Promise.withResolvers<void>();

  /** `nowMs` is of the monotonic clock, like all times of a held task. */
  constructor(task: Task, nowMs: number) {
    this.task = task;
    this.receivedAtMs = nowMs;
    this.abandoned = this.#abandonment.promise;
    this.extendTo(nowMs + (task.lease === undefined ? 0 : durationMs(task.lease)));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get leaseEndsAtMs(): number {
    return this.#leaseEndsAtMs;
  }

  /** The lease ran out or the server said so: the work is to be dropped. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** The server said so. Until then a result may still count, even after the lease. */
  get isLostByServer(): boolean {
    return this.#isLostByServer;
  }

  /** Whether it is still to be heartbeaten. */
  get isKept(): boolean {
    return !this.#isLost && !this.#isEnded;
  }

  get stoppedWhy(): AbortWhy | undefined {
    return this.#stoppedWhy;
  }

  get progress(): PendingProgress | undefined {
    return this.#progress;
  }

  /** The lease now ends at `endsAtMs`; unless it is extended again, it is lost then. */
  extendTo(endsAtMs: number): void {
    if (!this.isKept) return;
    this.#leaseEndsAtMs = endsAtMs;
    clearTimeout(this.#leaseTimer);
    const leftMs = Math.max(0, endsAtMs - performance.now());
    this.#leaseTimer = setTimeout(() => this.#lose(), leftMs);
  }

  /** The server says that the attempt is over. */
  lose(): void {
    this.#isLostByServer = true;
    this.#lose();
  }

  /** Tells the handler to stop; the first reason stays. */
  stop(why: AbortWhy): void {
    if (this.#isEnded || this.signal.aborted) return;
    this.#stoppedWhy = why;
    this.#controller.abort(new TaskAbortedError(why));
    this.onStop(why);
  }

  /** Gives up waiting for a handler that does not stop. */
  abandon(): void {
    this.#abandonment.resolve();
  }

  /** Progress to store; resolves when it is stored or does not matter any more. */
  report(text: string): Promise<void> {
    if (!this.isKept) return Promise.resolve();
    const done = Promise.withResolvers<void>();
    const overtaken = this.#progress;
    if (overtaken !== undefined) done.promise.then(overtaken.done.resolve);
    this.#progress = { text, done };
    this.onProgress();
    return done.promise;
  }

  /** The server has stored this progress; what was reported since is still pending. */
  stored(progress: PendingProgress): void {
    progress.done.resolve();
    if (this.#progress === progress) this.#progress = undefined;
  }

  /** Its report is over: nothing is kept any more. */
  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#leaseTimer);
    this.#progress?.done.resolve();
    this.#progress = undefined;
  }

  #lose(): void {
    this.#isLost = true;
    clearTimeout(this.#leaseTimer);
    this.#progress?.done.resolve();
    this.#progress = undefined;
    this.stop("lease_lost");
  }
}
