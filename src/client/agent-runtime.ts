import type { Client } from "@connectrpc/connect";
import type { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import type { AgentEvent } from "./agent-events.ts";

/** What the parts of a running agent share. */
export interface AgentRuntime {
  readonly agents: Client<typeof AgentService>;
  /** The lease that is asked for. */
  readonly leaseMs: number;
  /** From 0 to below 1, for jitter. */
  readonly random: () => number;
  readonly emit: (event: AgentEvent) => void;
  /** Aborted when no more tasks are to be taken. */
  readonly draining: AbortSignal;
  /** Reports are given up at this time of the monotonic clock; Infinity until the grace is over. */
  readonly reportUntilMs: () => number;
  /**
   * Registers the agent again after the server said AGENT_NOT_FOUND; calls at the same time share
   * one. Rejects when that is refused for good.
   */
  readonly registerAgain: () => Promise<void>;
  /** Ends the agent with an error, as a drain. */
  readonly fail: (error: unknown) => void;
}
