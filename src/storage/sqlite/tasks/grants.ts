import type { AgentName } from "../../../domain/agent.ts";
import type { Task } from "../../../domain/execution.ts";
import type { Change, Grants, Poll } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import type { ExecutionRow } from "../executions/execution-rows.ts";
import type { Look } from "../executions/queue.ts";
import { Touches } from "../ledger.ts";
import type { Taker } from "./takers.ts";
import type { TaskNeeds } from "./task-needs.ts";
import type { TaskRows } from "./task-rows.ts";

/** Grants what waits. Looks by reads alone first: a poll that finds nothing writes nothing. */
export function createGrants(
  context: SqliteContext,
  needs: TaskNeeds,
  taskRows: TaskRows,
): (agent: AgentName, poll: Poll) => Promise<Change<Grants>> {
  const { writer, clock } = context;
  const { rows, moves, queue, takers } = needs;
  const toTask = createTaskReader(context, needs, taskRows);

  function heldOf({ owner, id }: Taker, { pollId }: Poll): readonly Task[] {
    if (pollId === "") return [];
    const nowUs = clock.steadyUs();
    return rows.heldOfPoll
      .all({ agentOwner: owner, agentId: id, pollId, nowUs })
      .map((row) => toTask(row));
  }

  function grant(id: string, { agent, poll }: Granting, touches: Touches): Task {
    const { pollId, leaseUs } = poll;
    const row = rows.find.get({ id });
    if (row === undefined) throw new Error("a queued execution has gone");
    const granted = moves.grant(row, { agent, pollId, leaseUs }, touches);
    const task = toTask(granted, row.startedUs !== null);
    taskRows.insertGrant.run({
      executionId: id,
      attempt: task.attempt,
      agentOwner: agent.owner,
      agentId: agent.id,
      keyReleased: task.encryptionKey !== "",
      grantedUs: clock.wallUs(),
    });
    return task;
  }

  function see(agent: AgentName, poll: Poll): Sight {
    const taker = takers.require(agent);
    const held = heldOf(taker, poll);
    const { picked, nextDueUs } = queue.look(taker, poll.max);
    const isOver = held.length > 0 || poll.isGone();
    return { taker, held, picked: isOver ? [] : picked, nextDueUs };
  }

  function take(agent: AgentName, poll: Poll): Change<Grants> {
    const touched = new Touches();
    const sight = see(agent, poll);
    if (sight.picked.length === 0) return { result: answer(sight, sight.held), touched };
    const tasks = sight.picked.map((id) => grant(id, { agent, poll }, touched));
    return { result: answer({ ...sight, nextDueUs: null }, tasks), touched };
  }

  return async (agent, poll) => {
    const sight = await writer.read(() => see(agent, poll));
    if (sight.picked.length > 0) return writer.write(() => take(agent, poll));
    return { result: answer(sight, sight.held), touched: new Touches() };
  };
}

interface Granting {
  readonly agent: AgentName;
  readonly poll: Poll;
}

interface Sight extends Look {
  readonly taker: Taker;
  /** What an earlier call of the same poll was granted and the agent still holds. */
  readonly held: readonly Task[];
}

function answer({ taker, nextDueUs }: Sight, tasks: readonly Task[]): Grants {
  return { tasks, capabilities: taker.capabilities, nextDueUs };
}

/**
 * Reads what the agent that holds an execution is given, the workflow's key included. No progress is
 * looked for when nobody can have left any.
 */
function createTaskReader(
  { sealer, clock }: SqliteContext,
  { content }: TaskNeeds,
  taskRows: TaskRows,
): (row: ExecutionRow, mayHaveProgress?: boolean) => Task {
  function openKey({ owner, workflowId }: ExecutionRow, sealed: Buffer | null): string {
    if (sealed === null) return "";
    return sealer.open({ owner, id: workflowId, field: "encryption_key" }, sealed);
  }

  return (row, mayHaveProgress = true) => {
    const { id, workflowId, attempt, leaseToken } = row;
    const payload = workflowId === "" ? undefined : taskRows.payload.get({ id: workflowId });
    const nowUs = clock.steadyUs();
    return {
      id,
      workflowId,
      attempt,
      leaseToken,
      leaseUs: left(row.leaseUntilUs, nowUs),
      timeLeftUs: left(row.deadlineUs, nowUs),
      name: payload?.name ?? "",
      input: content.read(row, "input"),
      encryptedData: payload?.encryptedData ?? "",
      encryptionKey: openKey(row, payload?.sealedKey ?? null),
      progress: mayHaveProgress ? content.read(row, "progress") : "",
    };
  };
}

function left(untilUs: number | null, nowUs: number): number {
  return Math.max(0, (untilUs ?? nowUs) - nowUs);
}
