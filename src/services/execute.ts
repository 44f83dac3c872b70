import type { Duration } from "@bufbuild/protobuf/wkt";
import { invalid, ServiceError } from "../domain/errors.ts";
import { type Execution, failureMessages, hasEnded } from "../domain/execution.ts";
import { canonicalJson, problemOfJsonText } from "../domain/json-text.ts";
import { limits, spans } from "../domain/limits.ts";
import type { Call, ServiceParts } from "./call.ts";
import { type ExecutionNotes, fromDuration } from "./messages.ts";
import { requestKey } from "./request-key.ts";
import { withWaiter } from "./wait.ts";
import { hintFor, isListening } from "./waiting.ts";

/** What ExecuteWorkflow and ExecuteAgent have in common. */
export interface ExecuteRequest {
  readonly input: string;
  readonly wait?: Duration | undefined;
  readonly timeout?: Duration | undefined;
  readonly startTimeout?: Duration | undefined;
  readonly maxAttempts?: number | undefined;
  readonly atMostOnce: boolean;
  readonly requestId: string;
}

export interface ExecuteTarget {
  readonly workflowId: string | null;
  readonly agentId: string;
  readonly allowPublic: boolean;
}

/** Queues an execution and waits for its end. Throws TASK_TIMED_OUT when it times out meanwhile. */
export async function execute(
  parts: ServiceParts,
  call: Call,
  { target, request }: { readonly target: ExecuteTarget; readonly request: ExecuteRequest },
): Promise<{ readonly execution: Execution; readonly notes: ExecutionNotes }> {
  const { result, touched } = await parts.store.executions.createExecution(call.owner, {
    id: parts.newId("ex"),
    workflowId: target.workflowId,
    agentId: target.agentId,
    allowPublic: target.allowPublic,
    ...runOptions(parts, call, { target, request }),
  });
  parts.wakeups.announce(touched);

  const isHeard = hasEnded(result.execution.status) || (await isListening(parts, result.line));
  const askedMs = waitMs(request.wait, spans.executeWaitMaxMs);
  const ms = askedMs ?? (isHeard ? spans.executeWaitMs : 0);
  const execution = await awaitEnd(parts, call, { execution: result.execution, ms });
  call.outcome.ended = hasEnded(execution.status);
  const endedMeanwhile = !hasEnded(result.execution.status);
  if (execution.status === "timed_out" && endedMeanwhile) throw timedOut(execution);
  const hint = isHeard || hasEnded(execution.status) ? "" : hintFor(result.line);
  return { execution, notes: { replayed: result.replayed, hint } };
}

function runOptions(
  { store }: ServiceParts,
  call: Call,
  { target, request }: { readonly target: ExecuteTarget; readonly request: ExecuteRequest },
) {
  const input = jsonOf("input", request.input);
  const options = {
    timeoutUs: fromDuration(request.timeout, spans.timeoutMaxUs) ?? spans.timeoutUs,
    startTimeoutUs: fromDuration(request.startTimeout, spans.timeoutMaxUs) ?? spans.startTimeoutUs,
    maxAttempts: Math.min(request.maxAttempts ?? limits.attemptsDefault, limits.attemptsMax),
    atMostOnce: request.atMostOnce,
  };
  const content = [canonicalJson(input), options, target.agentId, target.allowPublic];
  return {
    input,
    ...options,
    ...requestKey(store, call, { requestId: request.requestId, content }),
  };
}

/** JSON text of a request; empty is `{}`. Throws VALIDATION_ERROR. */
export function jsonOf(field: string, text: string): string {
  if (text === "") return "{}";
  const problem = problemOfJsonText(text);
  if (problem !== null) throw invalid(field, problem);
  return text;
}

/** Waits until the execution has ended, at most so long; answers it as it is then. */
export async function awaitEnd(
  { store, wakeups, stopping }: ServiceParts,
  call: Call,
  { execution, ms }: { readonly execution: Execution; readonly ms: number },
): Promise<Execution> {
  const left = call.timeLeftMs();
  const waitUntil =
    performance.now() + Math.min(ms, left === undefined ? ms : left - spans.deadlineMarginMs);
  if (hasEnded(execution.status) || waitUntil <= performance.now()) return execution;

  return withWaiter(call, async (waiter) => {
    waiter.onAbort(stopping).with(wakeups.executions.listen(execution.id, waiter.wake));
    let latest = await store.executions.getExecution(call.owner, execution.id);
    while (!hasEnded(latest.status) && !call.signal.aborted && !stopping.aborted) {
      const hasNews = await waiter.wait(waitUntil - performance.now());
      latest = await store.executions.getExecution(call.owner, execution.id);
      if (!hasNews) break;
    }
    return latest;
  });
}

/** A wait that was asked for, in milliseconds. */
export function waitMs(wait: Duration | undefined, maxMs: number): number | undefined {
  const us = fromDuration(wait, maxMs * 1000);
  return us === undefined ? undefined : us / 1000;
}

function timedOut({ id, error }: Execution): ServiceError {
  return new ServiceError("TASK_TIMED_OUT", failureMessages.EXECUTION, {
    details: { executionId: id, timeoutKind: error?.failure ?? "EXECUTION" },
  });
}
