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
  /** When each was written last, oldest first. */
  readonly #writtenUs = new Map<string, number>();

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
  }

  /** Notes a call. Never throws: a sign of life that is lost is followed by another. */
  seen(owner: string, agentId: string): void {
    const key = `${agentId} ${owner}`;
    const nowUs = this.#clock.steadyUs();
    const writtenUs = this.#writtenUs.get(key);
    if (writtenUs !== undefined && nowUs - writtenUs < this.#stepUs) return;
    this.#writtenUs.delete(key);
    this.#writtenUs.set(key, nowUs);
    if (this.#writtenUs.size > rememberedMax) this.#forgetOldest();
    this.#agents
      .touchAgent(owner, agentId)
      .then(({ touched }) => this.#wakeups.announce(touched))
      .catch(this.#onFailure);
  }

  /** Makes the agents inactive that have been silent for too long. */
  async retire(stopping: AbortSignal): Promise<void> {
    let hasMore = true;
    while (hasMore && !stopping.aborted) {
      const seenBeforeUs = this.#clock.wallUs() - this.#silenceUs - this.#stepUs;
      const { result, touched } = await this.#agents.retireAgents(seenBeforeUs);
      this.#wakeups.announce(touched);
      hasMore = result.hasMore;
    }
  }

  #forgetOldest(): void {
    const [oldest] = this.#writtenUs.keys();
    if (oldest !== undefined) this.#writtenUs.delete(oldest);
  }
}
