import type { Touched } from "../storage/port.ts";
import type { PollLine } from "./poll-line.ts";

/**
 * Tells waiting calls that something has changed, after the commit and without data: whoever is
 * woken reads the store again, so none can be lost or come in the wrong order.
 */
export class Wakeups {
  /** By owner: its feed moved on. */
  readonly feeds = new Bells();
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
    for (const listener of this.#listeners.get(name) ?? []) listener();
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
}
