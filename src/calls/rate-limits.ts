import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { ServiceError } from "../domain/errors.ts";
import type { Group } from "../domain/groups.ts";

/** Calls a minute of each group; null: not limited. */
export type RateLimits = Readonly<Record<Group, number | null>>;

export const defaultRateLimits: RateLimits = {
  auth: 10,
  sync: 100,
  workflows: 50,
  agents: 100,
  executions: 600,
  tasks: 6000,
};

/** What an answer says of its limit. */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

const groupNames = {
  auth: "Auth",
  sync: "Sync",
  workflows: "Workflows",
  agents: "Agents",
  executions: "Executions",
  tasks: "Tasks",
} as const satisfies Record<Group, string>;

const minuteSeconds = 60;

/** Counts calls by group and key, in windows of a minute that start with the first call. */
export class RateCounters {
  readonly #counters = new Map<Group, RateLimiterMemory>();

  constructor(perMinute: RateLimits) {
    for (const [group, points] of Object.entries(perMinute)) {
      if (points === null) continue;
      const counter = new RateLimiterMemory({ points, duration: minuteSeconds });
      this.#counters.set(group as Group, counter);
    }
  }

  /** Counts one call of a group that is limited, and tells what is left. Throws RATE_LIMITED. */
  async take(group: Group, key: string, tell?: (state: RateState) => void): Promise<void> {
    const counter = this.#counters.get(group);
    if (counter === undefined) return;
    const found = await counter.consume(key).catch((refusal: unknown) => refusal);
    if (!(found instanceof RateLimiterRes)) throw found;
    const { remainingPoints, msBeforeNext, consumedPoints } = found;
    const state = {
      limit: counter.points,
      remaining: Math.max(0, remainingPoints),
      resetSeconds: Math.ceil(msBeforeNext / 1000),
    };
    tell?.(state);
    if (consumedPoints > counter.points) throw rateLimited(group, state, msBeforeNext);
  }
}

function rateLimited(group: Group, state: RateState, retryAfterMs: number): ServiceError {
  const limit = `${state.limit} calls a minute for ${groupNames[group]}`;
  const message = `${limit}; try again in ${state.resetSeconds} s`;
  return new ServiceError("RATE_LIMITED", message, { details: { group }, retryAfterMs });
}
