import type { Touched } from "../storage/port.ts";
import type { PollLine } from "./poll-line.ts";

/**
 * Tells waiting calls that something has changed, after the commit and without data: whoever is
 * woken reads the store again, so none can be lost or come in the wrong order.
 */
export class Wakeups {
  /** By owner: its feed moved on. */
  readonly feeds = new FeedBells();
  /** By execution id: it ended, is to be cancelled, or its attempt is over. */
  readonly executions = new Bells();
  readonly polls: PollLine;

  constructor(polls: PollLine) {
    this.polls = polls;
  }

  announce({ feeds, queued, executions }: Touched): void {
    for (const line of queued) this.polls.announce(line);
    for (const id of executions) this.executions.ring(id);
    for (const owner of feeds) this.feeds.ring(owner);
  }
}

/** Callbacks by name. */
export class Bells {
  readonly #listeners = new Map<string, Set<() => void>>();

  ring(name: string): void {
    this.wake(this.#listeners.get(name) ?? []);
  }

  /** Calls back at every ring from now on, until disposed of. */
  listen(name: string, listener: () => void): Disposable {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return {
      [Symbol.dispose]: () => {
        listeners.delete(listener);
        if (listeners.size === 0) this.#listeners.delete(name);
      },
    };
  }

  protected wake(listeners: Iterable<() => void>): void {
    for (const listener of listeners) listener();
  }
}

/**
 * Bells that many may follow. Whoever is woken reads and sends at once, which takes longer than the
 * write that rang: so one is woken now and the others one in each turn of the event loop, between
 * which other calls are served. One that is still to be woken when it rings again is woken once,
 * and finds all that came.
 */
export class FeedBells extends Bells {
  readonly #late = new Set<() => void>();
  #isTurning = false;

  protected override wake(listeners: Iterable<() => void>): void {
    for (const listener of listeners) this.#late.add(listener);
    if (!this.#isTurning) this.#turn();
  }

  override listen(name: string, listener: () => void): Disposable {
    const listening = super.listen(name, listener);
    return {
      [Symbol.dispose]: () => {
        listening[Symbol.dispose]();
        this.#late.delete(listener);
      },
    };
  }

  readonly #turn = (): void => {
    const [listener] = this.#late;
    if (listener !== undefined) {
      this.#late.delete(listener);
      listener();
    }
    this.#isTurning = this.#late.size > 0;
    if (this.#isTurning) setImmediate(this.#turn);
  };
}
