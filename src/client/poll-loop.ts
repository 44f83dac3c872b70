import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Task } from "../../gen/sealflow/v1/task_pb.ts";
import type { AgentRuntime } from "./agent-runtime.ts";
import { isPermanent, pause, retryDelayMs } from "./backoff.ts";
import { reasonOf } from "./error-reason.ts";

/** The places for tasks of an agent. */
export interface Slots {
  /** How many are free, once one is; 0 when the agent drains first. */
  whenFree(): Promise<number>;
  take(task: Task): void;
}

const waitMs = 30_000;
/** Beyond the wait: a server that has not answered by then is gone. */
const answerMaxMs = 10_000;
const tasksPerPollMax = 32;
const backoff = { firstMs: 500, maxMs: 15_000 };

/**
 * Takes tasks for as long as the agent does not drain. A poll keeps its id until it is answered, so
 * that tasks granted in a lost answer come again. Rejects when polling is refused for good.
 */
export async function pollTasks(runtime: AgentRuntime, slots: Slots): Promise<void> {
  const { draining, random } = runtime;
  let pollId = crypto.randomUUID();
  for (let failures = 0; !draining.aborted; ) {
    const maxTasks = Math.min(await slots.whenFree(), tasksPerPollMax);
    if (maxTasks === 0) return;
    try {
      const isEmptySoon = await poll(runtime, { slots, maxTasks, pollId });
      pollId = crypto.randomUUID();
      failures = isEmptySoon ? failures + 1 : 0;
      if (isEmptySoon) {
        await pause(retryDelayMs(failures, backoff, { error: undefined, random }), draining);
      }
    } catch (error) {
      if (draining.aborted) return;
      failures += 1;
      await recover(runtime, error, failures);
    }
  }
}

/** One poll. Whether it was answered without a task long before its wait was over. */
async function poll(
  runtime: AgentRuntime,
  { slots, maxTasks, pollId }: { slots: Slots; maxTasks: number; pollId: string },
): Promise<boolean> {
  const startedAtMs = performance.now();
  const { tasks } = await runtime.agents.pollTasks(
    {
      maxTasks,
      pollId,
      wait: durationFromMs(waitMs),
      lease: durationFromMs(runtime.leaseMs),
    },
    { signal: runtime.draining, timeoutMs: waitMs + answerMaxMs },
  );
  for (const task of tasks) slots.take(task);
  return tasks.length === 0 && performance.now() - startedAtMs < waitMs / 2;
}

async function recover(runtime: AgentRuntime, error: unknown, failures: number): Promise<void> {
  const { draining, random } = runtime;
  const isUnknown = reasonOf(error)?.reason === "AGENT_NOT_FOUND";
  if (!isUnknown && isPermanent(error)) throw error;
  if (isUnknown) await runtime.registerAgain();
  if (isUnknown && failures === 1) return;
  const delayMs = retryDelayMs(failures, backoff, { error, random });
  runtime.emit({ kind: "retrying", call: "poll", error, delayMs });
  await pause(delayMs, draining);
}
