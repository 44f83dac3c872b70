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
  /** What the agent can do; null until its first look at the queue: then anything wakes it. */
  capabilities: ReadonlySet<string> | null;
  /** Something may be there to take. */
  wake(): void;
  /** Ends it, empty: another poll of that id is open, or the agent is gone. */
  end(): void;
}

interface Place {
  readonly poll: OpenPoll;
  /** The line it was woken for, while it looks. */
  line: QueueLine | undefined;
  /** Something else came while it looked. */
  missed: boolean;
}

interface Listener {
  capabilities: ReadonlySet<string>;
  open: number;
  lastEndMs: number;
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
    if (places.size >= limits.pollsPerOwnerMax) throw tooManyPolls();
    if (poll.pollId !== "") this.#endPolls(poll.owner, poll.agentId, poll.pollId);
    const place: Place = { poll, line: undefined, missed: false };
    // (The first look is under way: what comes meanwhile makes it look again.)
    this.#places.set(poll.owner, places.add(place));
    this.#listener(poll).open += 1;
    return {
      looked: () => this.#looked(place),
      leave: (granted) => this.#leave(place, granted),
    };
  }

  /** Wakes the longest waiting poll that may take from this line, when it is due. */
  announce(line: QueueLine): void {
    const pauseMs = (line.dueUs - this.#clock.steadyUs()) / 1000;
    if (pauseMs > 0) {
      setTimeout(() => this.#wakeOne(line), Math.ceil(pauseMs)).unref();
    } else {
      this.#wakeOne(line);
    }
  }

  /** Whether an agent that may take from this line polls now, or did lately. */
  isListening({ owner, route }: QueueLine): boolean {
    const sinceMs = this.#nowMs() - spans.listeningMs;
    const listeners = this.#listeners.get(owner);
    for (const [agentId, { capabilities, open, lastEndMs }] of listeners ?? []) {
      if (open === 0 && lastEndMs < sinceMs) listeners?.delete(agentId);
      else if (mayTake(route, agentId, capabilities)) return true;
    }
    if (listeners?.size === 0) this.#listeners.delete(owner);
    return false;
  }

  /** Ends the polls of an agent that is no longer registered, and forgets that it listened. */
  dismiss(owner: string, agentId: string): void {
    this.#endPolls(owner, agentId);
    this.#listeners.get(owner)?.delete(agentId);
  }

  #wakeOne(line: QueueLine): void {
    for (const place of this.#places.get(line.owner) ?? []) {
      const { agentId, capabilities } = place.poll;
      if (capabilities !== null && !mayTake(line.route, agentId, capabilities)) continue;
      if (place.line !== undefined) {
        place.missed = true;
        continue;
      }
      place.line = line;
      place.poll.wake();
      return;
    }
  }

  #looked(place: Place): void {
    const { missed } = place;
    place.line = undefined;
    place.missed = false;
    if (missed) place.poll.wake();
  }

  #leave(place: Place, granted: boolean): void {
    const { poll, line } = place;
    const places = this.#places.get(poll.owner);
    places?.delete(place);
    if (places?.size === 0) this.#places.delete(poll.owner);
    const listener = this.#listener(poll);
    listener.open -= 1;
    listener.lastEndMs = this.#nowMs();
    listener.capabilities = poll.capabilities ?? listener.capabilities;
    // What it was woken for is still there: another may want it.
    if (line !== undefined && !granted) this.#wakeOne(line);
  }

  #endPolls(owner: string, agentId: string, pollId?: string): void {
    for (const { poll } of this.#places.get(owner) ?? []) {
      if (poll.agentId === agentId && (pollId === undefined || poll.pollId === pollId)) poll.end();
    }
  }

  #listener({ owner, agentId, capabilities }: OpenPoll): Listener {
    const ofOwner = this.#listeners.get(owner) ?? new Map<string, Listener>();
    const listener = ofOwner.get(agentId) ?? { capabilities: new Set(), open: 0, lastEndMs: 0 };
    if (capabilities !== null) listener.capabilities = capabilities;
    this.#listeners.set(owner, ofOwner.set(agentId, listener));
    return listener;
  }

  #nowMs(): number {
    return this.#clock.steadyUs() / 1000;
  }
}

/** A poll's place in the line. */
export interface OpenPlace {
  /** It has looked at the queue and waits on. */
  looked(): void;
  leave(granted: boolean): void;
}

function tooManyPolls(): ServiceError {
  return new ServiceError("RATE_LIMITED", `${limits.pollsPerOwnerMax} polls are open`, {
    details: { limit: "polls" },
    retryAfterMs: 1000,
  });
}
