import { expect } from "vitest";
import type { AgentName } from "../../src/domain/agent.ts";
import { type Execution, hasEnded, type Task } from "../../src/domain/execution.ts";
import { workflowStatus } from "../../src/domain/workflow.ts";
import { makeAgent, makeWorkflow } from "./drafts.ts";
import type { OpenedStore } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";
import { graceUs, poll, queue, reportOf, see, sweep } from "./work.ts";

/** One thing that happens. `pick` chooses among what was granted, or created, so far. */
export type Step =
  | {
      readonly kind: "create";
      readonly workflow: number;
      readonly atMostOnce: boolean;
      readonly maxAttempts: number;
      readonly timeoutUs: number;
    }
  | { readonly kind: "poll"; readonly agent: number; readonly max: number; readonly pollId: string }
  | { readonly kind: "report"; readonly verb: Verb; readonly pick: number }
  | { readonly kind: "beat"; readonly pick: number }
  | { readonly kind: "cancel"; readonly pick: number }
  | { readonly kind: "pass"; readonly us: number }
  | { readonly kind: "sweep" }
  | { readonly kind: "restart" }
  | { readonly kind: "deregister"; readonly agent: number };

type Verb = "complete" | "fail" | "release";

/** A grant, as its agent knows it. */
interface Held {
  readonly task: Task;
  readonly agent: AgentName;
  readonly pollId: string;
  readonly endsUs: number;
  leaseUntilUs: number;
  reported?: Verb;
}

interface Run {
  readonly id: string;
  readonly workflowId: string;
  readonly atMostOnce: boolean;
  readonly grants: Held[];
  cancelledUs?: number;
  ended?: Execution;
}

const agents: readonly AgentName[] = [
  { owner: "alice", id: "agent-1" },
  { owner: "alice", id: "agent-2" },
];
const workflowIds = ["w1", "w2"];
const leaseUs = 10_000_000;

/**
 * Plays a history against a store and against what callers alone can know, and throws at the first
 * difference. `audit` looks into the store after each step.
 */
export async function playHistory(
  opened: OpenedStore,
  steps: readonly Step[],
  audit: () => void = () => {},
): Promise<void> {
  const history = new History(opened);
  await history.begin();
  for (const step of steps) {
    await history.play(step);
    await history.check();
    audit();
  }
  await history.letTimePass();
  await history.check();
  audit();
}

class History {
  readonly #opened: OpenedStore;
  readonly #runs: Run[] = [];
  readonly #grants: Held[] = [];

  constructor(opened: OpenedStore) {
    this.#opened = opened;
  }

  async begin(): Promise<void> {
    const { store } = this.#opened;
    for (const { id } of agents) await makeAgent(store, "alice", { id });
    for (const id of workflowIds) await makeWorkflow(store, "alice", { id });
  }

  async play(step: Step): Promise<void> {
    const { store, clock } = this.#opened;
    clock.advance(1);
    if (step.kind === "create") await this.#create(step);
    else if (step.kind === "poll") await this.#poll(step);
    else if (step.kind === "report") await this.#report(step.verb, pickFrom(this.#grants, step));
    else if (step.kind === "beat") await this.#beat(pickFrom(this.#grants, step));
    else if (step.kind === "cancel") await this.#cancel(pickFrom(this.#runs, step));
    else if (step.kind === "pass") clock.advance(step.us);
    else if (step.kind === "sweep") await sweep(store);
    else if (step.kind === "restart") await store.tasks.restoreLeases();
    else await this.#deregister(agents[step.agent]);
  }

  /** Each execution that ended did so rightly; each workflow is what its executions make it. */
  async check(): Promise<void> {
    for (const run of this.#runs) {
      if (run.ended !== undefined) continue;
      const now = await see(this.#opened.store, run.id);
      if (hasEnded(now.status)) this.#noteEnd(run, now);
    }
    for (const id of workflowIds) await this.#checkWorkflow(id);
    await this.#checkTotals();
  }

  /** However it stands, the clock and the sweeper alone end everything; what had ended, had. */
  async letTimePass(): Promise<void> {
    const { store, clock } = this.#opened;
    for (let rounds = 0; rounds < 100; rounds += 1) {
      const { nextDueUs } = (await sweep(store)).result;
      if (nextDueUs === null) break;
      clock.advance(Math.max(0, nextDueUs - clock.steadyUs()));
    }
    for (const { id, ended } of this.#runs) {
      const now = await see(store, id);
      expect(hasEnded(now.status)).toBe(true);
      if (ended !== undefined) expect(now).toStrictEqual(ended);
    }
  }

  async #create(step: Extract<Step, { kind: "create" }>): Promise<void> {
    const { atMostOnce, maxAttempts, timeoutUs } = step;
    const id = `e${this.#runs.length}`;
    const workflowId = workflowIds[step.workflow] ?? "";
    const options = { atMostOnce, maxAttempts, timeoutUs, startTimeoutUs: timeoutUs };
    await queue(this.#opened.store, { id, workflowId, ...options });
    this.#runs.push({ id, workflowId, atMostOnce, grants: [] });
  }

  async #poll({ agent: index, max, pollId }: Extract<Step, { kind: "poll" }>): Promise<void> {
    const { store } = this.#opened;
    const agent = agents[index];
    if (agent === undefined) return;
    const { result } = await store.tasks.grantTasks(agent, poll({ max, pollId, leaseUs }));
    for (const task of result.tasks) {
      const known = this.#grants.find((it) => it.task.leaseToken === task.leaseToken);
      if (known === undefined) this.#noteGrant({ task, agent, pollId });
      else {
        expect(known).toMatchObject({ agent, pollId });
        expect(known.pollId).not.toBe("");
        expect(this.#isCurrent(known)).toBe(true);
      }
    }
  }

  /** Nobody else holds it, the attempt has its number, and what may run once does. */
  #noteGrant({ task, agent, pollId }: Pick<Held, "task" | "agent" | "pollId">): void {
    const { clock } = this.#opened;
    const nowUs = clock.steadyUs();
    const run = this.#runOf(task.id);
    const last = run.grants.at(-1);
    const isRelease = last?.reported === "release";
    expect(last === undefined || last.reported !== undefined || last.leaseUntilUs <= nowUs).toBe(
      true,
    );
    expect(task.attempt).toBe((last?.task.attempt ?? 0) + (isRelease ? 0 : 1));
    if (run.atMostOnce && last !== undefined) expect(isRelease).toBe(true);
    expect(run.cancelledUs).toBeUndefined();
    expect(task.timeLeftUs).toBeGreaterThan(0);
    const endsUs = nowUs + task.timeLeftUs;
    const held = { task, agent, pollId, endsUs, leaseUntilUs: nowUs + leaseUs };
    run.grants.push(held);
    this.#grants.push(held);
  }

  async #report(verb: Verb, held: Held | undefined): Promise<void> {
    if (held === undefined) return;
    const { reported } = held;
    const isOk = reported === undefined ? this.#isCurrent(held) : reported === verb;
    const call = this.#send(verb, held);
    if (!isOk) expect(await refusalOf(call)).toBe("LEASE_LOST");
    else await call;
    if (isOk) held.reported = verb;
  }

  #send(verb: Verb, { task, agent }: Held): Promise<unknown> {
    const { tasks } = this.#opened.store;
    const report = reportOf(task);
    const failure = { code: "E", message: "", retryable: true, retryAfterUs: 1_000_000 };
    if (verb === "release") return tasks.releaseTask(agent, report);
    if (verb === "fail") return tasks.failTask(agent, { ...report, failure, random: 1 });
    return tasks.completeTask(agent, { ...report, output: JSON.stringify(task.leaseToken) });
  }

  async #beat(held: Held | undefined): Promise<void> {
    if (held === undefined) return;
    const { store, clock } = this.#opened;
    const { result } = await store.tasks.heartbeatTasks(held.agent, [reportOf(held.task)]);
    const isCancelled = this.#runOf(held.task.id).cancelledUs !== undefined;
    const isOk = held.reported === undefined && this.#isCurrent(held);
    const status = isCancelled ? "cancel_requested" : "ok";
    expect(result[0]?.status).toBe(isOk ? status : "lease_lost");
    if (isOk) held.leaseUntilUs = clock.steadyUs() + leaseUs;
  }

  async #cancel(run: Run | undefined): Promise<void> {
    if (run === undefined) return;
    const { result } = await this.#opened.store.executions.cancelExecution("alice", run.id);
    if (result.status === "running") run.cancelledUs ??= this.#opened.clock.steadyUs();
    else if (run.ended === undefined) expect(result.status).toBe("cancelled");
  }

  async #deregister(agent: AgentName | undefined): Promise<void> {
    if (agent === undefined) return;
    const { store } = this.#opened;
    await store.agents.deregisterAgent(agent.owner, agent.id);
    await makeAgent(store, agent.owner, { id: agent.id });
    for (const held of this.#grants) if (held.agent === agent) held.leaseUntilUs = 0;
  }

  /** Whether the attempt is still its agent's: not granted anew, not ended, not out of time. */
  #isCurrent(held: Held): boolean {
    const nowUs = this.#opened.clock.steadyUs();
    const run = this.#runOf(held.task.id);
    const cancelEndsUs = (run.cancelledUs ?? Number.POSITIVE_INFINITY) + graceUs;
    return (
      run.ended === undefined &&
      run.grants.at(-1) === held &&
      nowUs < held.endsUs &&
      nowUs < cancelEndsUs
    );
  }

  #runOf(id: string): Run {
    const run = this.#runs.find((it) => it.id === id);
    if (run === undefined) throw new Error(`${id} was never created`);
    return run;
  }

  #noteEnd(run: Run, now: Execution): void {
    run.ended = now;
    const last = run.grants.at(-1);
    const isCompleted = now.status === "completed";
    expect(isCompleted).toBe(last?.reported === "complete");
    expect(now.output).toBe(isCompleted ? JSON.stringify(last?.task.leaseToken) : "");
    expect(now.attempt).toBe(last?.task.attempt ?? 0);
    expect(now.error === null).toBe(isCompleted || now.status === "cancelled");
    if (run.cancelledUs !== undefined) expect(["completed", "cancelled"]).toContain(now.status);
  }

  async #checkWorkflow(id: string): Promise<void> {
    const { store } = this.#opened;
    const { items, total } = await store.executions.listExecutions("alice", {
      workflowId: id,
      limit: 1000,
    });
    expect(total).toBe(items.length);
    expect(total).toBe(this.#runs.filter(({ workflowId }) => workflowId === id).length);
    const active = items.filter(({ status }) => !hasEnded(status));
    const started = active.filter(({ startedUs }) => startedUs !== null).length;
    const { status } = await store.workflows.getWorkflow("alice", id);
    const possible = lastOutcomes(items).map((lastOutcome) =>
      workflowStatus({ started, waiting: active.length - started, lastOutcome }),
    );
    expect(possible).toContain(status);
  }

  async #checkTotals(): Promise<void> {
    const { workflows } = this.#opened.store;
    for (const status of ["draft", "running", "completed", "failed"] as const) {
      const { items, total } = await workflows.listWorkflows("alice", { status, limit: 10 });
      expect(total).toBe(items.length);
    }
  }
}

/** How the last to end of those ever granted ended; several ended in the same microsecond. */
function lastOutcomes(items: readonly Execution[]): ("completed" | "failed" | null)[] {
  const ended = items.filter((it) => it.finishedUs !== null && it.startedUs !== null);
  if (ended.length === 0) return [null];
  const lastUs = Math.max(...ended.map(({ finishedUs }) => finishedUs ?? 0));
  return ended
    .filter(({ finishedUs }) => finishedUs === lastUs)
    .map(({ status }) => (status === "completed" ? "completed" : "failed"));
}

function pickFrom<T>(all: readonly T[], { pick }: { readonly pick: number }): T | undefined {
  return all[pick % Math.max(1, all.length)];
}
