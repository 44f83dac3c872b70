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
    this.wake(this.#listeners.get(name) ?? [], name);
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

  protected wake(listeners: Iterable<() => void>, _name: string): void {
    for (const listener of listeners) listener();
  }
}

/** Told of rings before anyone is woken, and when all have been. */
export interface FeedWatcher {
  rang(owner: string): void;
  quiet(): void;
}

/** In so many turns of the event loop the answer of a write is on the wire, trailers and all. */
const turnsBetween = 3;

/**
 * Bells that many may follow. Whoever is woken reads and sends at once, and a hundred of them take
 * longer than many writes: so they are woken one by one with some turns of the event loop between,
 * in which the write that rang is answered and other calls are served. One that is still to be woken
 * when it rings again is woken once, and finds all that came.
 */
export class FeedBells extends Bells {
  readonly #late = new Set<() => void>();
  readonly #watchers: FeedWatcher[] = [];
  #isWaking = false;

  /** From a ring until the turn after the last listener's. */
  get isWaking(): boolean {
    return this.#isWaking;
  }

  watch(watcher: FeedWatcher): void {
    this.#watchers.push(watcher);
  }

  protected override wake(listeners: Iterable<() => void>, name: string): void {
    for (const { rang } of this.#watchers) rang(name);
    for (const listener of listeners) this.#late.add(listener);
    if (this.#isWaking || this.#late.size === 0) return;
    this.#isWaking = true;
    afterTurns(turnsBetween, this.#wakeNext);
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

  readonly #wakeNext = (): void => {
    const [listener] = this.#late;
    if (listener === undefined) {
      this.#isWaking = false;
      for (const { quiet } of this.#watchers) quiet();
      return;
    }
    this.#late.delete(listener);
    listener();
    afterTurns(turnsBetween, this.#wakeNext);
  };
}

function afterTurns(count: number, run: () => void): void {
  setImmediate(count === 1 ? run : () => afterTurns(count - 1, run));
}
