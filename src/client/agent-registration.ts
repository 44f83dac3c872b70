import type { AgentOptions } from "./agent-options.ts";
import type { AgentRuntime } from "./agent-runtime.ts";
import { isPermanent, pause, retryDelayMs } from "./backoff.ts";

type Parts = Pick<AgentRuntime, "agents" | "random" | "emit" | "draining">;

const backoff = { firstMs: 500, maxMs: 15_000 };
const answerMaxMs = 10_000;

/**
 * Registers the agent, and tries until it is registered or the agent drains; calls at the same time
 * share one. Rejects when the server refuses for good.
 */
export function createRegistration(parts: Parts, options: AgentOptions): () => Promise<void> {
  let pending: Promise<void> | undefined;
  let isFirst = true;
  return () => {
    pending ??= register(parts, options)
      .then((isDone) => {
        if (!isDone) return;
        parts.emit({ kind: "registered", again: !isFirst });
        isFirst = false;
      })
      .finally(() => {
        pending = undefined;
      });
    return pending;
  };
}

async function register(parts: Parts, options: AgentOptions): Promise<boolean> {
  const { agents, random, emit, draining } = parts;
  const request = {
    id: options.id,
    type: options.type ?? "",
    name: options.name ?? "",
    capabilities: [...(options.capabilities ?? [])],
    isPublic: options.isPublic ?? false,
  };
  for (let failures = 1; ; failures += 1) {
    try {
      // An agent that drains already registers once more if its last reports need it.
      const signal = draining.aborted ? {} : { signal: draining };
      await agents.registerAgent(request, { timeoutMs: answerMaxMs, ...signal });
      return true;
    } catch (error) {
      if (draining.aborted) return false;
      if (isPermanent(error)) throw error;
      const delayMs = retryDelayMs(failures, backoff, { error, random });
      emit({ kind: "retrying", call: "register", error, delayMs });
      await pause(delayMs, draining);
    }
  }
}
