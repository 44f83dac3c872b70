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

const nobody: ReadonlySet<() => void> = new Set();

/** Callbacks by name. */
export class Bells {
  readonly #listeners = new Map<string, Set<() => void>>();

  ring(name: string): void {
    this.wake(this.#listeners.get(name) ?? nobody, name);
  }

  /** Calls back at every ring from now on, until disposed of. */
  listen(name: string, listener: () => void): Disposable {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return {
      [Symbol.dispose]: () => {
        listeners.delete(listener);
        if (listeners.size === 0 && this.#listeners.get(name) === listeners) {
          this.#listeners.delete(name);
        }
      },
    };
  }

  protected count(name: string): number {
    return this.#listeners.get(name)?.size ?? 0;
  }

  protected wake(listeners: ReadonlySet<() => void>, _name: string): void {
    for (const listener of listeners) listener();
  }
}

/** Told of each ring before anyone is woken, and when all who follow that feed have been. */
export interface FeedWatcher {
  rang(owner: string): void;
  quiet(owner: string): void;
}

/** In so many turns of the event loop the answer of a write is on the wire, trailers and all. */
const turnsBetween = 3;
/** So many are woken in one turn: a call that comes meanwhile waits a fraction of a millisecond. */
const wokenAtOnce = 8;

/**
 * Bells that many may follow. Whoever is woken reads and sends at once, and a hundred of them take
 * longer than many writes: so a few are woken at a time, with some turns of the event loop between,
 * in which the write that rang is answered and other calls are served. Owners take turns. One that is
 * still to be woken when it rings again is woken once, and finds all that came.
 */
export class FeedBells extends Bells {
  /** Those who are still to be woken, by owner; the first is next. */
  readonly #line = new Map<string, Set<() => void>>();
  readonly #watchers: FeedWatcher[] = [];
  #isUnderWay = false;

  /** Whether several are being woken: from the ring until some turns after the last of them was. */
  isWakingSeveral(owner: string): boolean {
    return this.#line.has(owner) && this.count(owner) > 1;
  }

  watch(watcher: FeedWatcher): void {
    this.#watchers.push(watcher);
  }

  protected override wake(listeners: ReadonlySet<() => void>, owner: string): void {
    for (const { rang } of this.#watchers) rang(owner);
    if (listeners.size === 0) return;
    const late = this.#line.get(owner);
    if (late === undefined) this.#line.set(owner, new Set(listeners));
    else for (const listener of listeners) late.add(listener);
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    afterTurns(turnsBetween, this.#wakeSome);
  }

  override listen(owner: string, listener: () => void): Disposable {
    const listening = super.listen(owner, listener);
    return {
      [Symbol.dispose]: () => {
        listening[Symbol.dispose]();
        this.#line.get(owner)?.delete(listener);
      },
    };
  }

  readonly #wakeSome = (): void => {
    let left = wokenAtOnce;
    // Who goes to the end of the line is not visited again.
    let visits = this.#line.size;
    for (const [owner, late] of this.#line) {
      if (left === 0 || visits === 0) break;
      visits -= 1;
      this.#line.delete(owner);
      if (late.size === 0) {
        for (const { quiet } of this.#watchers) quiet(owner);
        continue;
      }
      // To the end of the line, once more when all have been woken.
      this.#line.set(owner, late);
      for (const listener of late) {
        if (left === 0) break;
        left -= 1;
        late.delete(listener);
        listener();
      }
    }
    this.#isUnderWay = this.#line.size > 0;
    if (this.#isUnderWay) afterTurns(turnsBetween, this.#wakeSome);
  };
}

function afterTurns(count: number, run: () => void): void {
  setImmediate(count === 1 ? run : () => afterTurns(count - 1, run));
}
