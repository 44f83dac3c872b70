import { createClient } from "@connectrpc/connect";
import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { type AgentLimits, type AgentOptions, agentLimits } from "./agent-options.ts";
import { createRegistration } from "./agent-registration.ts";
import type { AgentRuntime } from "./agent-runtime.ts";
import type { TaskHandler } from "./agent-task.ts";
import { connect } from "./client.ts";
import { clientCredentials } from "./client-credentials.ts";
import { startHeartbeats } from "./heartbeats.ts";
import { pollTasks } from "./poll-loop.ts";
import { runTask } from "./task-run.ts";
import { TaskSlots } from "./task-slots.ts";

export type { AgentEvent, TaskEnd } from "./agent-events.ts";
export type { AgentCredentials, AgentOptions } from "./agent-options.ts";
export {
  type AbortWhy,
  type AgentTask,
  TaskAbortedError,
  TaskFailedError,
  type TaskFailure,
  type TaskHandler,
} from "./agent-task.ts";
export type { TokenSource } from "./call-credentials.ts";
export { type ClientCredentials, clientCredentials } from "./client-credentials.ts";

/** How long a stopped handler has to settle before its task is given back without it. */
const settleMs = 7000;
/** How long the last reports are tried once the grace is over. */
const lastReportsMs = 5000;

/**
 * Is an agent: registers, takes tasks, has `handler` do them, reports what it returns or throws,
 * and keeps the leases meanwhile. What fails on the way is tried again with growing pauses.
 * Resolves when it has drained. Rejects, once it has drained, with what the server refuses for
 * good: the credentials, the registration.
 *
 * `Input` is the caller's word for what its tasks carry; it is not checked.
 * @throws RangeError, TypeError, SealError for options that cannot be
 */
export async function runAgent<Input = unknown>(
  options: AgentOptions,
  handler: TaskHandler<Input>,
): Promise<void> {
  const limits = agentLimits(options);
  const drain = createDrain(options.signal);
  const runtime = createRuntime(options, limits, drain);
  const heartbeats = startHeartbeats(runtime);
  const slots = new TaskSlots({
    concurrency: limits.concurrency,
    draining: drain.signal,
    run(held) {
      heartbeats.keep(held);
      return runTask(runtime, held, { handler: untyped(handler), key: options.key });
    },
  });
  try {
    await work(runtime, slots);
    if (slots.size > 0) runtime.emit({ kind: "draining", held: slots.size });
    await empty(slots, drain, limits.graceMs);
  } finally {
    heartbeats.stop();
    drain.dispose();
  }
  if (drain.failure !== undefined) throw drain.failure.error;
}

/** Until it drains. */
async function work(runtime: AgentRuntime, slots: TaskSlots): Promise<void> {
  if (runtime.draining.aborted) return;
  try {
    await runtime.registerAgain();
    await pollTasks(runtime, slots);
  } catch (error) {
    runtime.fail(error);
  }
}

/** Handlers may finish; then they are told to stop; then their tasks are given back anyhow. */
async function empty(slots: TaskSlots, drain: Drain, graceMs: number): Promise<void> {
  await slots.whenEmpty(graceMs);
  drain.reportUntilMs = performance.now() + settleMs + lastReportsMs;
  slots.stopAll("draining");
  await slots.whenEmpty(settleMs);
  slots.abandonAll();
  await slots.whenEmpty(lastReportsMs);
}

/** How an agent comes to its end. */
interface Drain {
  readonly signal: AbortSignal;
  reportUntilMs: number;
  failure: { readonly error: unknown } | undefined;
  fail(error: unknown): void;
  dispose(): void;
}

function createDrain(asked: AbortSignal | undefined): Drain {
  const controller = new AbortController();
  const start = () => controller.abort();
  if (asked?.aborted === true) start();
  asked?.addEventListener("abort", start, { once: true });
  return {
    signal: controller.signal,
    reportUntilMs: Number.POSITIVE_INFINITY,
    failure: undefined,
    fail(error) {
      this.failure ??= { error };
      start();
    },
    dispose: () => asked?.removeEventListener("abort", start),
  };
}

function createRuntime(options: AgentOptions, limits: AgentLimits, drain: Drain): AgentRuntime {
  const { onEvent, random = Math.random } = options;
  const agents =
    options.transport === undefined
      ? connectAgent(options)
      : createClient(AgentService, options.transport);
  const emit: AgentRuntime["emit"] = (event) => {
    try {
      onEvent?.(event);
    } catch {
      // Whoever listens must not be able to stop the work.
    }
  };
  return {
    agents,
    leaseMs: limits.leaseMs,
    random,
    emit,
    draining: drain.signal,
    reportUntilMs: () => drain.reportUntilMs,
    registerAgain: createRegistration({ agents, random, emit, draining: drain.signal }, options),
    fail: (error) => drain.fail(error),
  };
}

function connectAgent({ server, token, credentials, id, fetch }: AgentOptions) {
  const fetched = fetch === undefined ? {} : { fetch };
  const source = token ?? clientCredentials(server, credentials, fetch);
  return connect(server, { token: source, agentId: id, ...fetched }).agents;
}

/** The border between what a handler says its input is and the JSON that comes. */
function untyped<Input>(handler: TaskHandler<Input>): TaskHandler {
  return handler as TaskHandler;
}
