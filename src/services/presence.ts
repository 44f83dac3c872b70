import type { Clock } from "../domain/clock.ts";
import { spans } from "../domain/limits.ts";
import type { AgentStore } from "../storage/port.ts";
import type { Wakeups } from "./wakeups.ts";

const rememberedMax = 100_000;

/**
 * Signs of life: any call with an agent's id by its owner. Kept in memory, written at most once a
 * minute; who was silent for longer than that is written at his next call.
 */
export class Presence {
  readonly #agents: AgentStore;
  readonly #wakeups: Wakeups;
  readonly #clock: Clock;
  readonly #onFailure: (cause: unknown) => void;
  /** When each was written last, oldest first. */
  readonly #writtenUs = new Map<string, number>();

  constructor(parts: {
    readonly agents: AgentStore;
    readonly wakeups: Wakeups;
    readonly clock: Clock;
    onFailure(cause: unknown): void;
  }) {
    this.#agents = parts.agents;
    this.#wakeups = parts.wakeups;
    this.#clock = parts.clock;
    this.#onFailure = parts.onFailure;
  }

  /** Notes a call. Never throws: a sign of life that is lost is followed by another. */
  seen(owner: string, agentId: string): void {
    const key = `${agentId} ${owner}`;
    const nowUs = this.#clock.steadyUs();
    const writtenUs = this.#writtenUs.get(key);
    if (writtenUs !== undefined && nowUs - writtenUs < spans.lastSeenStepUs) return;
    this.#writtenUs.delete(key);
    this.#writtenUs.set(key, nowUs);
    if (this.#writtenUs.size > rememberedMax) this.#forgetOldest();
    this.#agents
      .touchAgent(owner, agentId)
      .then(({ touched }) => this.#wakeups.announce(touched))
      .catch(this.#onFailure);
  }

  /** Makes the agents inactive that were silent for so long. */
  async retire(silentUs: number): Promise<void> {
    let hasMore = true;
    while (hasMore) {
      const { result, touched } = await this.#agents.retireAgents(this.#clock.wallUs() - silentUs);
      this.#wakeups.announce(touched);
      hasMore = result.hasMore;
    }
  }

  #forgetOldest(): void {
    const [oldest] = this.#writtenUs.keys();
    if (oldest !== undefined) this.#writtenUs.delete(oldest);
  }
}
