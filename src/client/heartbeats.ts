import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type HeartbeatTasksResponse,
  type TaskHeartbeatSchema,
  TaskHeartbeatStatus,
} from "../../gen/sealflow/v1/task_pb.ts";
import type { AgentRuntime } from "./agent-runtime.ts";
import { isPermanent, pause, retryDelayMs } from "./backoff.ts";
import { reasonOf } from "./error-reason.ts";
import type { HeldTask, PendingProgress } from "./held-task.ts";

/** Keeps the leases of held tasks and hears of cancels. */
export interface Heartbeats {
  /** Keeps a task until it has ended. */
  keep(held: HeldTask): void;
  /** Ends the loop. */
  stop(): void;
}

/** Rounds start at least so far apart; a task that ends sooner never costs a heartbeat. */
const roundGapMs = 250;
/** While a task is being cancelled, waiting for news would return at once: ask this often. */
const cancellingGapMs = 1000;
const waitMaxMs = 30_000;
const answerMinMs = 1000;
const backoff = { firstMs: 200, maxMs: 2000 };

/**
 * One loop for all held tasks of an agent: each round extends the leases by one call, which then
 * waits for news a third of the shortest lease, so that a cancel is heard at once.
 */
export function startHeartbeats(runtime: AgentRuntime): Heartbeats {
  const kept = new Set<HeldTask>();
  const stopped = new AbortController();
  let round = new AbortController();
  const nextRound = () => round.abort();

  async function run(): Promise<void> {
    let failures = 0;
    let outcome: Outcome = "done";
    while (!stopped.signal.aborted) {
      const startedAtMs = performance.now();
      round = new AbortController();
      const held = dropEnded(kept);
      if (held.length === 0) {
        await pause(waitMaxMs, round.signal);
        continue;
      }
      // A round that was cut short may not have reached the server; the next one always does.
      outcome = await beat(runtime, held, outcome === "interrupted" ? undefined : round.signal);
      await pause(startedAtMs + roundGapMs - performance.now(), stopped.signal);
      failures = typeof outcome === "object" ? failures + 1 : 0;
      if (typeof outcome === "object") {
        await recover(runtime, { error: outcome.error, failures, stopped: stopped.signal });
      }
    }
  }

  run().catch(runtime.fail);
  return {
    keep(held) {
      kept.add(held);
      held.onProgress = nextRound;
      setTimeout(() => held.isKept && nextRound(), roundGapMs);
    },
    stop() {
      stopped.abort();
      nextRound();
    },
  };
}

function dropEnded(kept: Set<HeldTask>): readonly HeldTask[] {
  for (const held of kept) if (!held.isKept) kept.delete(held);
  return [...kept];
}

type Outcome = "done" | "interrupted" | { readonly error: unknown };

/** One round. `interrupted` ends its wait for news; without it, there is none. */
async function beat(
  { agents, leaseMs }: AgentRuntime,
  all: readonly HeldTask[],
  interrupted: AbortSignal | undefined,
): Promise<Outcome> {
  const startedAtMs = performance.now();
  const isCancelling = all.some((held) => held.stoppedWhy === "cancel_requested");
  const hasProgress = all.some((held) => held.progress !== undefined);
  const waits = interrupted !== undefined && !isCancelling && !hasProgress;
  const thirdMs = Math.min(...all.map((held) => leaseLeftMs(held, leaseMs))) / 3;
  const waitMs = waits ? Math.round(Math.min(thirdMs, waitMaxMs)) : 0;
  const timeoutMs = waitMs + Math.round(Math.max(thirdMs, answerMinMs));
  const beats = await Promise.all(all.map(taskBeat));
  try {
    const answer = await agents.heartbeatTasks(
      { tasks: beats.map(({ message }) => message), wait: durationFromMs(waitMs) },
      waits ? { timeoutMs, signal: interrupted } : { timeoutMs },
    );
    takeResults(answer, beats, startedAtMs + leaseMs);
  } catch (error) {
    if (waits && interrupted.aborted) return "interrupted";
    // Progress that is refused must not cost the leases of all.
    if (isPermanent(error)) for (const { held, progress } of beats) settle(held, progress);
    return { error };
  }
  if (isCancelling) await pause(Math.min(cancellingGapMs, thirdMs), interrupted);
  return "done";
}

/** The whole lease while it is young; what is left of it when rounds have failed. */
function leaseLeftMs(held: HeldTask, leaseMs: number): number {
  return Math.max(0, Math.min(leaseMs, held.leaseEndsAtMs - performance.now()));
}

interface TaskBeat {
  readonly held: HeldTask;
  readonly progress: PendingProgress | undefined;
  readonly message: MessageInitShape<typeof TaskHeartbeatSchema>;
}

async function taskBeat(held: HeldTask): Promise<TaskBeat> {
  const { progress } = held;
  const message = { taskId: held.task.id, leaseToken: held.task.leaseToken };
  if (progress === undefined) return { held, progress, message };
  const text = await held.encodeProgress(progress.text);
  return { held, progress, message: { ...message, progress: text } };
}

/** Stored, or never to be: nobody waits for it any more. */
function settle(held: HeldTask, progress: PendingProgress | undefined): void {
  if (progress !== undefined) held.stored(progress);
}

function takeResults(
  { results }: HeartbeatTasksResponse,
  beats: readonly TaskBeat[],
  leaseEndsAtMostMs: number,
): void {
  const nowMs = performance.now();
  for (const [index, { held, progress }] of beats.entries()) {
    const result = results[index];
    if (result === undefined || !held.isKept) continue;
    if (result.status === TaskHeartbeatStatus.LEASE_LOST) {
      held.lose();
      continue;
    }
    const leftMs = result.leaseLeft === undefined ? 0 : durationMs(result.leaseLeft);
    // What was left when the answer was written is never more than a lease from the request.
    held.extendTo(Math.min(nowMs + leftMs, leaseEndsAtMostMs));
    settle(held, progress);
    if (result.status === TaskHeartbeatStatus.CANCEL_REQUESTED) held.stop("cancel_requested");
  }
}

async function recover(
  runtime: AgentRuntime,
  { error, failures, stopped }: { error: unknown; failures: number; stopped: AbortSignal },
): Promise<void> {
  if (reasonOf(error)?.reason === "AGENT_NOT_FOUND") await runtime.registerAgain();
  const { random } = runtime;
  // A refusal will not change, but the leases end by themselves, and the next poll says it aloud.
  const delayMs = isPermanent(error)
    ? backoff.maxMs
    : retryDelayMs(failures, backoff, { error, random });
  runtime.emit({ kind: "retrying", call: "heartbeat", error, delayMs });
  await pause(delayMs, stopped);
}
