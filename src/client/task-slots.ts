import type { Task } from "../../gen/sealflow/v1/task_pb.ts";
import type { AbortWhy } from "./agent-task.ts";
import { pause } from "./backoff.ts";
import { HeldTask } from "./held-task.ts";
import type { Slots } from "./poll-loop.ts";

/** How many tasks at a time, until when, and what is done with one. */
export interface SlotsOptions {
  readonly concurrency: number;
  readonly draining: AbortSignal;
  /** Does a task to its very end; never rejects. */
  readonly run: (held: HeldTask) => Promise<void>;
}

/** The tasks that an agent holds, and the places that are left. */
export class TaskSlots implements Slots {
  readonly #options: SlotsOptions;
  readonly #running = new Map<HeldTask, Promise<void>>();
  #freed = Promise.withResolvers<void>();

  constructor(options: SlotsOptions) {
    this.#options = options;
    options.draining.addEventListener("abort", () => this.#freed.resolve(), { once: true });
  }

  get size(): number {
    return this.#running.size;
  }

  async whenFree(): Promise<number> {
    const { concurrency, draining } = this.#options;
    while (!draining.aborted && this.size >= concurrency) await this.#freed.promise;
    return draining.aborted ? 0 : concurrency - this.size;
  }

  take(task: Task): void {
    const isHeld = [...this.#running.keys()].some(
      (held) => held.task.leaseToken === task.leaseToken,
    );
    if (isHeld) return;
    const held = new HeldTask(task, performance.now());
    const free = () => {
      this.#running.delete(held);
      this.#freed.resolve();
      this.#freed = Promise.withResolvers<void>();
    };
    this.#running.set(held, this.#options.run(held).finally(free));
  }

  /** Waits until nothing is held, at most so long. */
  async whenEmpty(timeoutMs: number): Promise<void> {
    const emptied = new AbortController();
    const all = Promise.all(this.#running.values()).finally(() => emptied.abort());
    await Promise.race([all, pause(timeoutMs, emptied.signal)]);
  }

  stopAll(why: AbortWhy): void {
    for (const held of this.#running.keys()) held.stop(why);
  }

  abandonAll(): void {
    for (const held of this.#running.keys()) held.abandon();
  }
}
