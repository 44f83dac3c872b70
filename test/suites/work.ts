import { expect } from "vitest";
import type { AgentName } from "../../src/domain/agent.ts";
import type { Execution, Task, TaskFailure } from "../../src/domain/execution.ts";
import type {
  Change,
  ExecutionDraft,
  Grants,
  Heartbeat,
  HeartbeatResult,
  Poll,
  Store,
} from "../../src/storage/port.ts";
import { executionDraft, makeAgent, makeWorkflow } from "./drafts.ts";
import { type OpenedStore, second } from "./open-store.ts";

/** Work as agents do it, in the fewest words. The agent is alice's agent-1 where none is given. */

export const worker: AgentName = { owner: "alice", id: "agent-1" };
export const leaseUs = 30 * second;
export const graceUs = 10 * second;

export function poll(changes: Partial<Poll> = {}): Poll {
  return { pollId: "", max: 1, leaseUs, isGone: () => false, ...changes };
}

export async function queue(
  store: Store,
  changes: Partial<ExecutionDraft> = {},
  owner = "alice",
): Promise<Execution> {
  return (await store.executions.createExecution(owner, executionDraft(changes))).result.execution;
}

export async function grants(
  store: Store,
  changes: Partial<Poll> = {},
  agent = worker,
): Promise<Grants> {
  return (await store.tasks.grantTasks(agent, poll(changes))).result;
}

/** Takes one task, which must be there. */
export async function take(
  store: Store,
  changes: Partial<Poll> = {},
  agent = worker,
): Promise<Task> {
  const [task] = (await grants(store, changes, agent)).tasks;
  if (task === undefined) throw new Error("nothing to take");
  return task;
}

/** The ids of what a poll is granted, in order. */
export async function takeIds(
  store: Store,
  changes: Partial<Poll> = {},
  agent = worker,
): Promise<string[]> {
  return (await grants(store, changes, agent)).tasks.map(({ id }) => id);
}

export function complete(store: Store, task: Task, output = '"done"'): Promise<Change<void>> {
  return store.tasks.completeTask(worker, { ...reportOf(task), output });
}

export function fail(
  store: Store,
  task: Task,
  changes: Partial<TaskFailure> & { readonly random?: number } = {},
): Promise<Change<void>> {
  const { random = 1, ...given } = changes;
  const failure = { code: "E_PRINTER", message: "out of paper", retryable: true, ...given };
  return store.tasks.failTask(worker, { ...reportOf(task), failure, random });
}

export function release(store: Store, task: Task): Promise<Change<void>> {
  return store.tasks.releaseTask(worker, reportOf(task));
}

export async function beat(
  store: Store,
  task: Task,
  changes: Partial<Heartbeat> = {},
): Promise<HeartbeatResult> {
  const { result } = await store.tasks.heartbeatTasks(worker, [{ ...reportOf(task), ...changes }]);
  const [first] = result;
  expect(result).toHaveLength(1);
  if (first === undefined) throw new Error("no result");
  return first;
}

export function reportOf({ id, leaseToken }: Task) {
  return { taskId: id, leaseToken };
}

/** Alice's execution as it is now. */
export function see(store: Store, id = "e1"): Promise<Execution> {
  return store.executions.getExecution("alice", id);
}

export function sweep(store: Store): Promise<Change<{ readonly nextDueUs: number | null }>> {
  return store.tasks.sweepTasks(100);
}

/** A store in which alice has agent-1 and workflow w1. */
export async function openWithWork(open: () => Promise<OpenedStore>): Promise<OpenedStore> {
  const opened = await open();
  await makeAgent(opened.store, "alice");
  await makeWorkflow(opened.store, "alice");
  return opened;
}
