import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import type { TaskEnd } from "./agent-events.ts";
import type { AgentRuntime } from "./agent-runtime.ts";
import { type AgentTask, TaskFailedError, type TaskHandler } from "./agent-task.ts";
import type { SealingKey } from "./crypto.ts";
import type { HeldTask } from "./held-task.ts";
import { openTask, type TaskEnvelope } from "./task-envelope.ts";
import { describeFailure, type ReportedFailure, storable } from "./task-failure.ts";
import { deliver, type ReportAnswer } from "./task-report.ts";

const outputBytesMax = 1024 * 1024;
const progressBytesMax = 32 * 1024;
/** A seal makes text a third longer, and adds its header. */
const sealedProgressBytesMax = 23 * 1024;

/** Does one task from its grant to the answer to its report. Never rejects. */
export async function runTask(
  runtime: AgentRuntime,
  held: HeldTask,
  { handler, key }: { readonly handler: TaskHandler; readonly key: SealingKey | undefined },
): Promise<void> {
  const { id: taskId, attempt, workflowId, name } = held.task;
  runtime.emit({
    kind: "granted",
    taskId,
    attempt,
    workflowId: workflowId || undefined,
    name: name || undefined,
  });
  held.onStop = (why) => runtime.emit({ kind: "stopping", taskId, attempt, why });
  const envelope = await openTask(held.task, key);
  held.encodeProgress = envelope.progressText;
  const outcome = await handle(held, envelope, handler);
  const end = await report(runtime, held, outcome);
  held.end();
  runtime.emit({ ...end, taskId, attempt, elapsedMs: performance.now() - held.receivedAtMs });
}

/** How the handler ended. */
type Outcome =
  | { readonly kind: "output"; readonly text: string }
  | { readonly kind: "failure"; readonly failure: ReportedFailure; readonly error: unknown }
  | { readonly kind: "abandoned" };

async function handle(
  held: HeldTask,
  envelope: TaskEnvelope,
  handler: TaskHandler,
): Promise<Outcome> {
  try {
    // Work whose lease has gone meanwhile is not begun.
    held.signal.throwIfAborted();
    const task = agentTask(held, envelope);
    const running = Promise.resolve(handler(task, held.signal)).then((output) => ({ output }));
    const result = await Promise.race([running, held.abandoned]);
    return result === undefined ? { kind: "abandoned" } : await write(result.output, envelope);
  } catch (error) {
    return { kind: "failure", failure: describeFailure(error, envelope.isSealed), error };
  }
}

async function write(output: unknown, envelope: TaskEnvelope): Promise<Outcome> {
  const text = await envelope.outputText(output).catch((cause: unknown) => {
    throw new TaskFailedError("The output is not a value of JSON", {
      code: "OUTPUT_NOT_JSON",
      retryable: false,
      cause,
    });
  });
  if (byteLength(text) > outputBytesMax) {
    throw new TaskFailedError("The output is larger than 1 MiB", {
      code: "OUTPUT_TOO_LARGE",
      retryable: false,
    });
  }
  return { kind: "output", text };
}

async function report(runtime: AgentRuntime, held: HeldTask, outcome: Outcome): Promise<TaskEnd> {
  if (outcome.kind === "output") return complete(runtime, held, outcome.text);
  if (held.isLost) return { kind: "lost" };
  if (outcome.kind === "abandoned" || held.stoppedWhy === "draining") return release(runtime, held);
  return fail(runtime, held, outcome);
}

async function complete(runtime: AgentRuntime, held: HeldTask, output: string): Promise<TaskEnd> {
  // A lease that only ran out may still be taken back; one that the server ended may not.
  if (held.isLostByServer) return { kind: "lost" };
  const { id: taskId, leaseToken } = held.task;
  const answer = await deliver(runtime, held, (options) =>
    runtime.agents.completeTask({ taskId, leaseToken, output }, options),
  );
  if (answer.kind !== "refused") return endOf(answer, { kind: "completed" });
  const { error } = answer;
  const failure = { code: "OUTPUT_REFUSED", message: error.message, retryable: false };
  return fail(runtime, held, {
    failure: describeFailure(new TaskFailedError(failure.message, failure)),
    error,
  });
}

async function fail(
  runtime: AgentRuntime,
  held: HeldTask,
  { failure, error }: { readonly failure: ReportedFailure; readonly error: unknown },
): Promise<TaskEnd> {
  const { id: taskId, leaseToken } = held.task;
  const isCancelled = held.stoppedWhy === "cancel_requested";
  const { code, message, retryable, retryAfterMs } = isCancelled ? cancelled : failure;
  const answer = await deliver(runtime, held, (options) =>
    runtime.agents.failTask(
      {
        taskId,
        leaseToken,
        error: { code, message },
        retryable,
        ...(retryAfterMs === undefined ? {} : { retryAfter: durationFromMs(retryAfterMs) }),
      },
      options,
    ),
  );
  return endOf(
    answer,
    isCancelled ? { kind: "cancelled" } : { kind: "failed", code, message, error },
  );
}

const cancelled: ReportedFailure = {
  code: "CANCELLED",
  message: "Stopped, as was asked",
  retryable: false,
  retryAfterMs: undefined,
};

async function release(runtime: AgentRuntime, held: HeldTask): Promise<TaskEnd> {
  const { id: taskId, leaseToken } = held.task;
  const answer = await deliver(runtime, held, (options) =>
    runtime.agents.releaseTask({ taskId, leaseToken }, options),
  );
  return endOf(answer, { kind: "released" });
}

function endOf(answer: ReportAnswer, taken: TaskEnd): TaskEnd {
  return answer.kind === "taken" ? taken : { kind: "lost", error: answer.error };
}

function agentTask(held: HeldTask, envelope: TaskEnvelope): AgentTask {
  const { task } = held;
  return {
    id: task.id,
    workflowId: task.workflowId || undefined,
    attempt: task.attempt,
    name: task.name || undefined,
    input: envelope.input,
    payload: envelope.payload,
    encryptedData: task.encryptedData || undefined,
    encryptionKey: task.encryptionKey || undefined,
    progress: envelope.progress,
    timeLeftMs: task.timeLeft === undefined ? undefined : durationMs(task.timeLeft),
    heartbeat: (progress) => held.report(progressText(progress, envelope.isSealed)),
  };
}

function progressText(progress: unknown, isSealed: boolean): string {
  const text: string | undefined =
    typeof progress === "string" ? progress : JSON.stringify(progress);
  if (text === undefined) throw new TypeError("Progress is text or a value of JSON");
  const bytesMax = isSealed ? sealedProgressBytesMax : progressBytesMax;
  if (byteLength(text) > bytesMax) {
    throw new RangeError(`Progress is larger than ${bytesMax} bytes`);
  }
  return storable(text);
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).byteLength;
}
