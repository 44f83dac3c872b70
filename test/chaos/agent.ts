import { randomUUID } from "node:crypto";
import type { Json } from "../doors/canonical.ts";
import type { Caller, Timed } from "./caller.ts";
import type { Granted, Verb } from "./history.ts";

/** How an agent treats a task. */
const habits = {
  complete: 40,
  /** Heartbeats for a while first. */
  work: 15,
  fail: 10,
  giveUp: 5,
  release: 6,
  /** Reports long after its lease has run out. */
  oversleep: 10,
  /** Never says another word of it. */
  die: 9,
  /** Says it twice. */
  repeat: 5,
};

const leaseS = 5;

/**
 * Takes tasks and treats them by habit. `isHonest` turns true when the faults are over: from then
 * on it completes whatever it is handed.
 */
export async function playAgent(
  caller: Caller,
  agentId: string,
  isHonest: () => boolean,
): Promise<void> {
  await caller.untilAnswered("registerAgent", { id: agentId, type: "chaos" });
  const running = new Set<Promise<void>>();
  while (!caller.isStopped) {
    for (const granted of await poll(caller, agentId)) {
      const task = treat(caller, granted, isHonest()).finally(() => running.delete(task));
      running.add(task);
    }
  }
  await Promise.all(running);
}

/** The same poll again until it is answered, so that no grant is lost with its answer. */
async function poll(caller: Caller, agentId: string): Promise<readonly Granted[]> {
  const { outcome, answeredMs } = await caller.untilAnswered("pollTasks", {
    pollId: randomUUID(),
    maxTasks: caller.random.whole(1, 3),
    wait: 5,
    lease: leaseS,
  });
  if (outcome === "unknown") return [];
  if (!("ok" in outcome)) {
    caller.history.faults.push(`poll was refused: ${outcome.reason}`);
    await caller.pause(1);
    return [];
  }
  const tasks = (outcome.ok["tasks"] ?? []) as Record<string, Json>[];
  return tasks.map((task) => {
    const granted = {
      executionId: String(task["id"]),
      attempt: Number(task["attempt"]),
      token: String(task["leaseToken"]),
      agentId,
      answeredMs,
    };
    caller.history.granted.push(granted);
    return granted;
  });
}

async function treat(caller: Caller, task: Granted, isHonest: boolean): Promise<void> {
  const { random } = caller;
  const habit = isHonest ? "complete" : random.choose(habits);
  if (habit === "die") return;
  if (habit === "oversleep") await caller.pause(leaseS * random.between(0.9, 2.5));
  if (habit === "work" && !(await beat(caller, task))) return;
  if (habit === "fail" || habit === "giveUp") return report(caller, task, "fail", habit);
  if (habit === "release") return report(caller, task, "release", habit);
  await report(caller, task, "complete", habit);
  if (habit === "repeat") await report(caller, task, "complete", habit);
}

/** Heartbeats for some leases; false once there is nothing left to do. */
async function beat(caller: Caller, task: Granted): Promise<boolean> {
  for (let beats = caller.random.whole(1, 8); beats > 0; beats--) {
    await caller.pause(leaseS / 3);
    const { executionId: taskId, token: leaseToken } = task;
    const { outcome } = await caller.once("heartbeatTask", { taskId, leaseToken });
    if (outcome === "unknown") continue;
    if ("reason" in outcome) return false;
    // A cancel is obeyed, or not: half of the time it goes on.
    if (outcome.ok["cancelRequested"] === true && caller.random.chance(0.5)) return false;
  }
  return true;
}

async function report(caller: Caller, task: Granted, verb: Verb, habit: string): Promise<void> {
  const { executionId, token } = task;
  const isFinal = habit === "giveUp";
  const request = {
    taskId: executionId,
    leaseToken: token,
    ...(verb === "complete" ? { output: { token } } : {}),
    ...(verb === "fail" ? { error: { code: "CHAOS" }, retryable: !isFinal } : {}),
  };
  const note = ({ outcome, ...times }: Timed) => {
    const answer = outcome === "unknown" ? "unknown" : "ok" in outcome ? "ok" : outcome.reason;
    caller.history.reported.push({
      ...{ executionId, token, verb, isFinal, answer },
      ...times,
    });
  };
  const rpc = verb === "complete" ? "completeTask" : verb === "fail" ? "failTask" : "releaseTask";
  await caller.untilAnswered(rpc, request, note);
}
