import type { Clock } from "../domain/clock.ts";
import { spans } from "../domain/limits.ts";
import type { AgentStore } from "../storage/port.ts";
import type { Wakeups } from "./wakeups.ts";

const rememberedMax = 100_000;

/**
 * Signs of life: any call with an agent's id by its owner. Written at most once a minute (or four
 * times in the silence that makes an agent inactive, if that is shorter); what comes between is
 * known in memory alone, so an agent may be inactive that much later, but never too early.
 */
export class Presence {
  readonly #agents: AgentStore;
  readonly #wakeups: Wakeups;
  readonly #clock: Clock;
  readonly #onFailure: (cause: unknown) => void;
  readonly #silenceUs: number;
  readonly #stepUs: number;
  /** What was written last of each, oldest first. */
  readonly #written = new Map<string, Sign>();
  /** The wall clock less the steady one: it changes when the wall clock is set. */
  #aheadUs: number;

  constructor(parts: {
    readonly agents: AgentStore;
    readonly wakeups: Wakeups;
    readonly clock: Clock;
    /** How long an agent may be silent before it is inactive. */
    readonly silenceUs: number;
    onFailure(cause: unknown): void;
  }) {
    this.#agents = parts.agents;
    this.#wakeups = parts.wakeups;
    this.#clock = parts.clock;
    this.#onFailure = parts.onFailure;
    this.#silenceUs = parts.silenceUs;
    this.#stepUs = Math.min(spans.lastSeenStepUs, Math.floor(parts.silenceUs / 4));
    this.#aheadUs = this.#readAheadUs();
  }

  /** Notes a call. Never throws: a sign of life that is lost is followed by another. */
  seen(owner: string, agentId: string): void {
    const key = `${agentId} ${owner}`;
    const nowUs = this.#clock.steadyUs();
    const writtenUs = this.#written.get(key)?.writtenUs;
    if (writtenUs !== undefined && nowUs - writtenUs < this.#stepUs) return;
    this.#written.delete(key);
    this.#written.set(key, { owner, agentId, writtenUs: nowUs });
    if (this.#written.size > rememberedMax) this.#forgetOldest();
    void this.#write(owner, agentId);
  }

  /** Makes the agents inactive that have been silent for too long. */
  async retire(stopping: AbortSignal): Promise<void> {
    await this.#followWallClock(stopping);
    let hasMore = true;
    while (hasMore && !stopping.aborted) {
      const seenBeforeUs = this.#clock.wallUs() - this.#silenceUs - this.#stepUs;
      const { result, touched } = await this.#agents.retireAgents(seenBeforeUs);
      this.#wakeups.announce(touched);
      hasMore = result.hasMore;
    }
  }

  /**
   * Once the wall clock was set, what was written by it tells nothing of silence: whoever was heard
   * of lately is written again.
   */
  async #followWallClock(stopping: AbortSignal): Promise<void> {
    const aheadUs = this.#readAheadUs();
    if (Math.abs(aheadUs - this.#aheadUs) < this.#stepUs) return;
    this.#aheadUs = aheadUs;
    const heardSinceUs = this.#clock.steadyUs() - this.#silenceUs - this.#stepUs;
    for (const { owner, agentId, writtenUs } of [...this.#written.values()]) {
      if (stopping.aborted) return;
      if (writtenUs >= heardSinceUs) await this.#write(owner, agentId);
    }
  }

  #readAheadUs(): number {
    return this.#clock.wallUs() - this.#clock.steadyUs();
  }

  async #write(owner: string, agentId: string): Promise<void> {
    try {
      const { touched } = await this.#agents.touchAgent(owner, agentId);
      this.#wakeups.announce(touched);
    } catch (cause) {
      this.#onFailure(cause);
    }
  }

  #forgetOldest(): void {
    const [oldest] = this.#written.keys();
    if (oldest !== undefined) this.#written.delete(oldest);
  }
}

/** A sign of life. */
interface Sign {
  readonly owner: string;
  readonly agentId: string;
  /** By the steady clock. */
  readonly writtenUs: number;
}
