import type { CallOptions } from "@connectrpc/connect";
import type { AgentRuntime } from "./agent-runtime.ts";
import { isPermanent, pause, retryDelayMs } from "./backoff.ts";
import { reasonOf } from "./error-reason.ts";
import type { HeldTask } from "./held-task.ts";

/**
 * What became of a report: it counts, the attempt was over before it, or it was refused for what it
 * says.
 */
export type ReportAnswer =
  | { readonly kind: "taken" }
  | { readonly kind: "over"; readonly error: unknown }
  | { readonly kind: "refused"; readonly error: Error };

const backoff = { firstMs: 200, maxMs: 5000 };
const answerMaxMs = 10_000;

/**
 * Sends a report until the server answers it; repeating one is harmless. Gives up a whole lease
 * after the last one ended: until then a server that was away may still take it, for it gives
 * leases their full length again when it comes back.
 */
export async function deliver(
  runtime: AgentRuntime,
  held: HeldTask,
  send: (options: CallOptions) => Promise<unknown>,
): Promise<ReportAnswer> {
  for (let failures = 1; ; failures += 1) {
    try {
      await send({ timeoutMs: answerMaxMs });
      return { kind: "taken" };
    } catch (error) {
      const answer = finalAnswer(error);
      if (answer !== undefined) return answer;
      const { random } = runtime;
      const delayMs = retryDelayMs(failures, backoff, { error, random });
      const untilMs = Math.min(held.leaseEndsAtMs + runtime.leaseMs, runtime.reportUntilMs());
      if (performance.now() + delayMs > untilMs) return { kind: "over", error };
      runtime.emit({ kind: "retrying", call: "report", error, delayMs });
      await pause(delayMs);
      if (reasonOf(error)?.reason === "AGENT_NOT_FOUND") {
        await runtime.registerAgain().catch(runtime.fail);
      }
    }
  }
}

function finalAnswer(error: unknown): ReportAnswer | undefined {
  switch (reasonOf(error)?.reason) {
    case "LEASE_LOST":
    case "TASK_NOT_FOUND":
      return { kind: "over", error };
    case "VALIDATION_ERROR":
    case "PAYLOAD_TOO_LARGE":
      return error instanceof Error ? { kind: "refused", error } : { kind: "over", error };
    default:
      return isPermanent(error) ? { kind: "over", error } : undefined;
  }
}
