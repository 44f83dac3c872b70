import type { Clock } from "../domain/clock.ts";
import { ServiceError } from "../domain/errors.ts";
import { mayTake } from "../domain/execution.ts";
import { limits, spans } from "../domain/limits.ts";
import type { QueueLine } from "../storage/port.ts";

/** One open poll. */
export interface OpenPoll {
  readonly owner: string;
  readonly agentId: string;
  /** Empty: none. */
  readonly pollId: string;
  /** Something may be there to take. */
  wake(): void;
  /** Ends it, empty: another poll of that id is open, or the agent is gone. */
  end(): void;
}

/** A poll's place in the line. */
export interface OpenPlace {
  /** It looks at the queue now: what comes meanwhile makes it look again. */
  looking(): void;
  /** It has looked, as an agent that can do this. Granted something, it will leave. */
  looked(capabilities: ReadonlySet<string>, isGranted: boolean): void;
  leave(): void;
}

/** What the agents of an owner can do that poll, or did lately. */
interface Listener {
  capabilities: ReadonlySet<string>;
  open: number;
  lastEndMs: number;
}

interface Place {
  readonly poll: OpenPoll;
  /** From its first look on: before, nobody knows whether the agent exists. */
  listener: Listener | undefined;
  /** A place that looks, or was woken to, is passed over by what comes. */
  isBusy: boolean;
  /** Something came while it was busy. */
  hasMissed: boolean;
  /** What it was woken for. */
  line: QueueLine | undefined;
}

/**
 * The polls that wait, longest first, and who is listening at all. An execution that comes wakes
 * one poll whose agent may take it, not all of them; the store decides who gets it.
 */
export class PollLine {
  readonly #clock: Clock;
  readonly #places = new Map<string, Set<Place>>();
  readonly #listeners = new Map<string, Map<string, Listener>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws RATE_LIMITED when the owner has too many polls open. Ends the open poll of that id. */
  join(poll: OpenPoll): OpenPlace {
    const places = this.#places.get(poll.owner) ?? new Set();
    const ended = poll.pollId === "" ? 0 : this.#endPolls(poll, poll.pollId);
    if (places.size - ended >= limits.pollsPerOwnerMax) throw tooManyPolls();
    const place: Place = {
      poll,
      listener: undefined,
      isBusy: true,
      hasMissed: false,
      line: undefined,
    };
    this.#places.set(poll.owner, places.add(place));
    return {
      looking: () => {
        place.isBusy = true;
      },
      looked: (capabilities, isGranted) => {
        this.#learn(place, capabilities);
        if (!isGranted) this.#waitOn(place);
      },
      leave: () => this.#leave(place),
    };
  }

  /** Wakes the longest waiting poll that may take from this line, when it is due. */
  announce(line: QueueLine): void {
    const pauseMs = (line.dueUs - this.#clock.steadyUs()) / 1000;
    if (pauseMs <= 0) this.#wakeOne(line);
    // Every poll that is open by then will have begun after now, and looks for itself.
    else if (pauseMs <= spans.pollWaitMaxMs) {
      setTimeout(() => this.#wakeOne(line), Math.ceil(pauseMs)).unref();
    }
  }

  /** Whether an agent that may take from this line polls now, or did lately. */
  isListening({ owner, route }: QueueLine): boolean {
    for (const [agentId, { capabilities }] of this.#listenersOf(owner)) {
      if (mayTake(route, agentId, capabilities)) return true;
    }
    return false;
  }

  /** The agents of an owner that poll now, or did lately. */
  listening(owner: string): readonly string[] {
    return [...this.#listenersOf(owner)].map(([agentId]) => agentId);
  }

  /** Ends the polls of an agent that is no longer registered, and forgets that it listened. */
  dismiss(owner: string, agentId: string): void {
    this.#endPolls({ owner, agentId });
    this.#listeners.get(owner)?.delete(agentId);
  }

  /** Forgets those who have been silent for too long. */
  *#listenersOf(owner: string): Iterable<readonly [agentId: string, listener: Listener]> {
    const sinceMs = this.#nowMs() - spans.listeningMs;
    const listeners = this.#listeners.get(owner);
    for (const entry of listeners ?? []) {
      const [agentId, { open, lastEndMs }] = entry;
      if (open === 0 && lastEndMs < sinceMs) listeners?.delete(agentId);
      else yield entry;
    }
    if (listeners?.size === 0) this.#listeners.delete(owner);
  }

  #wakeOne(line: QueueLine): void {
    for (const place of this.#places.get(line.owner) ?? []) {
      if (place.isBusy) {
        // Whatever it finds: it looks again before it waits, so that nothing is slept through.
        place.hasMissed = true;
      } else if (this.#canTake(place, line)) {
        place.isBusy = true;
        place.line = line;
        place.poll.wake();
        return;
      }
    }
  }

  #canTake({ poll, listener }: Place, { route }: QueueLine): boolean {
    return listener !== undefined && mayTake(route, poll.agentId, listener.capabilities);
  }

  #learn(place: Place, capabilities: ReadonlySet<string>): void {
    place.listener ??= this.#listen(place.poll);
    place.listener.capabilities = capabilities;
  }

  #waitOn(place: Place): void {
    const { line, hasMissed } = place;
    place.isBusy = hasMissed;
    place.hasMissed = false;
    place.line = undefined;
    // What it may take and did not find was taken by another; what it may not is still there.
    if (line !== undefined && !this.#canTake(place, line)) this.#wakeOne(line);
    if (hasMissed) place.poll.wake();
  }

  #leave(place: Place): void {
    const { poll, listener, line } = place;
    const places = this.#places.get(poll.owner);
    places?.delete(place);
    if (places?.size === 0) this.#places.delete(poll.owner);
    if (listener !== undefined) {
      listener.open -= 1;
      listener.lastEndMs = this.#nowMs();
    }
    // It may have taken something else, or nothing: a look too many does no harm.
    if (line !== undefined) this.#wakeOne(line);
  }

  #listen({ owner, agentId }: OpenPoll): Listener {
    const ofOwner = this.#listeners.get(owner) ?? new Map<string, Listener>();
    const known = ofOwner.get(agentId);
    const listener = known ?? { capabilities: new Set<string>(), open: 0, lastEndMs: 0 };
    this.#listeners.set(owner, ofOwner.set(agentId, listener));
    listener.open += 1;
    return listener;
  }

  /** How many it ended. */
  #endPolls(of: { readonly owner: string; readonly agentId: string }, pollId?: string): number {
    const ended = [...(this.#places.get(of.owner) ?? [])].filter(
      ({ poll }) => poll.agentId === of.agentId && (pollId === undefined || poll.pollId === pollId),
    );
    for (const { poll } of ended) poll.end();
    return ended.length;
  }

  #nowMs(): number {
    return this.#clock.steadyUs() / 1000;
  }
}

function tooManyPolls(): ServiceError {
  return new ServiceError("RATE_LIMITED", `${limits.pollsPerOwnerMax} polls are open`, {
    details: { limit: "polls" },
    retryAfterMs: 1000,
  });
}
