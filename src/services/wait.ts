import type { Call } from "./call.ts";

/** Does `work` with a wait, and disposes of the wait in the end. */
export async function withWaiter<T>(
  call: Pick<Call, "signal" | "outcome">,
  work: (waiter: Waiter) => Promise<T>,
): Promise<T> {
  const waiter = new Waiter(call);
  try {
    return await work(waiter);
  } finally {
    waiter[Symbol.dispose]();
  }
}

/**
 * A wait of a call for any of several things; its caller leaving is one of them. What happens
 * between two waits is remembered, so that nothing falls between a look at the store and a wait.
 */
export class Waiter implements Disposable {
  #rung = false;
  #resume: (() => void) | undefined;
  readonly #call: Pick<Call, "signal" | "outcome">;
  readonly #disposables: Disposable[] = [];

  constructor(call: Pick<Call, "signal" | "outcome">) {
    this.#call = call;
    this.onAbort(call.signal);
  }

  /** Wakes the wait; an arrow, so that it can be handed on. */
  readonly wake = (): void => {
    this.#rung = true;
    this.#resume?.();
  };

  /** Wakes when the signal aborts, or has. */
  onAbort(signal: AbortSignal): this {
    if (signal.aborted) this.wake();
    signal.addEventListener("abort", this.wake, { once: true });
    return this.with({ [Symbol.dispose]: () => signal.removeEventListener("abort", this.wake) });
  }

  /** Disposed of with the wait. */
  with(disposable: Disposable): this {
    this.#disposables.push(disposable);
    return this;
  }

  /** Resolves true when something happened since the last wait, false when the time is over. */
  async wait(ms: number): Promise<boolean> {
    if (!this.#rung && ms > 0) await this.#sleep(ms);
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }

  async #sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const began = performance.now();
    const timer = setTimeout(resolve, ms);
    this.#resume = resolve;
    await promise;
    clearTimeout(timer);
    this.#call.outcome.waitedMs += performance.now() - began;
  }

  [Symbol.dispose](): void {
    for (const disposable of this.#disposables) disposable[Symbol.dispose]();
  }
}
