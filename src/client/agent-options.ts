import type { Transport } from "@connectrpc/connect";
import type { AgentEvent } from "./agent-events.ts";
import type { TokenSource } from "./call-credentials.ts";
import type { ClientCredentials } from "./client-credentials.ts";
import { keyBytes, type SealingKey } from "./sealing-key.ts";

/** How an agent proves who it is. */
export type AgentCredentials =
  | { readonly token: TokenSource; readonly credentials?: never }
  /** Tokens are fetched and renewed with these. */
  | { readonly credentials: ClientCredentials; readonly token?: never };

/** Who an agent is and how it works. */
export type AgentOptions = AgentCredentials & {
  /** The server's HTTP address, e.g. `http://localhost:8080`. */
  readonly server: string;
  /** 1 to 128 of `A-Z a-z 0-9 . _ : -`. */
  readonly id: string;
  /** What kind of agent, in the owner's words. */
  readonly type?: string;
  /** What people call it. Default: the id. */
  readonly name?: string;
  readonly capabilities?: readonly string[];
  /** Whether other owners may see and name it. Default false. */
  readonly isPublic?: boolean;
  /** Tasks at a time, 1 to 500. Default 1. */
  readonly concurrency?: number;
  /** How long a task stays the agent's when it falls silent, 5 s to 10 min. Default 30 s. */
  readonly leaseMs?: number;
  /** How long a draining agent lets handlers finish before it stops them. Default 10 s. */
  readonly graceMs?: number;
  /** Opens sealed inputs and payloads; what goes back is then sealed with it. */
  readonly key?: SealingKey;
  /** Aborted to drain: no new tasks, then the promise of `runAgent` resolves. */
  readonly signal?: AbortSignal;
  /** Told of what happens. What it throws is dropped. */
  readonly onEvent?: (event: AgentEvent) => void;
  /** In place of the global one. */
  readonly fetch?: typeof globalThis.fetch;
  /** In place of Connect over fetch. It must set the credentials itself. */
  readonly transport?: Transport;
  /** From 0 to below 1, for jitter. Default Math.random. */
  readonly random?: () => number;
};

/** The numbers of the options, checked. */
export interface AgentLimits {
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly graceMs: number;
}

/** @throws RangeError, SealError for what cannot be, before anything is sent. */
export function agentLimits(options: AgentOptions): AgentLimits {
  if (options.key !== undefined) keyBytes(options.key);
  return {
    concurrency: within("concurrency", options.concurrency ?? 1, [1, 500]),
    leaseMs: within("leaseMs", options.leaseMs ?? 30_000, [5000, 600_000]),
    graceMs: within("graceMs", options.graceMs ?? 10_000, [0, 3_600_000]),
  };
}

function within(name: string, value: number, [min, max]: readonly [number, number]): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}`);
}
