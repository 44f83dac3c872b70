import type { AgentName } from "../../../domain/agent.ts";
import { ServiceError } from "../../../domain/errors.ts";
import { retryPauseUs, type TaskFailure } from "../../../domain/execution.ts";
import type { Change, TaskReport, TaskStore } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import type { ExecutionRow } from "../executions/execution-rows.ts";
import { holdsLease, lossesWhenHeardOf } from "../executions/leases.ts";
import { Touches } from "../ledger.ts";
import type { TaskNeeds } from "./task-needs.ts";
import type { TaskRows, TaskVerb } from "./task-rows.ts";

export type Reports = Pick<TaskStore, "completeTask" | "failTask" | "releaseTask">;

/** What agents report. Each report ends the attempt, and its token with it. */
export function createReports(
  context: SqliteContext,
  needs: TaskNeeds,
  taskRows: TaskRows,
): Reports {
  const { moves, content } = needs;
  const report = createReporter(context, needs, taskRows);

  function fail(row: ExecutionRow, { failure, random }: Failed, touches: Touches): void {
    const failures = row.failures + 1;
    if (row.cancelUs !== null) moves.end(row, { status: "cancelled" }, touches);
    else if (failure.retryable && failures < row.maxAttempts && !row.atMostOnce) {
      const pauseUs = failure.retryAfterUs ?? retryPauseUs(failures, random);
      const losses = lossesWhenHeardOf(row);
      const wait = { pauseUs, isNewAttempt: true, failures, losses, keepsToken: false };
      moves.queueAgain(row, wait, touches);
    } else {
      content.write(row, "error", failure.message);
      const errorCode = failure.code === "" ? "AGENT_ERROR" : failure.code;
      moves.end(row, { status: "failed", failure: "AGENT_ERROR", errorCode }, touches);
    }
  }

  function release(row: ExecutionRow, touches: Touches): void {
    if (row.cancelUs !== null) moves.end(row, { status: "cancelled" }, touches);
    else {
      const { failures } = row;
      const losses = lossesWhenHeardOf(row);
      const wait = { pauseUs: 0, isNewAttempt: false, failures, losses, keepsToken: false };
      moves.queueAgain(row, wait, touches);
    }
  }

  return {
    completeTask: (agent, completed) =>
      report(agent, { report: completed, verb: "complete" }, (row, touches) => {
        content.write(row, "output", completed.output);
        moves.end(row, { status: "completed" }, touches);
      }),
    failTask: (agent, failed) =>
      report(agent, { report: failed, verb: "fail" }, (row, touches) => fail(row, failed, touches)),
    releaseTask: (agent, released) => report(agent, { report: released, verb: "release" }, release),
  };
}

interface Failed {
  readonly failure: TaskFailure;
  readonly random: number;
}

interface Reported {
  readonly report: TaskReport;
  readonly verb: TaskVerb;
}

/** Lets a report act when its attempt is still the agent's, and once only. */
function createReporter(
  { writer, clock }: SqliteContext,
  { rows, takers }: TaskNeeds,
  taskRows: TaskRows,
) {
  function isRepeated(agent: AgentName, { report, verb }: Reported): boolean {
    const { taskId: executionId, leaseToken } = report;
    const known = taskRows.report.get({ executionId, leaseToken });
    if (known === undefined) return false;
    const isSame =
      known.verb === verb && known.agentOwner === agent.owner && known.agentId === agent.id;
    if (!isSame) throw leaseLost(executionId);
    return true;
  }

  function requireGranted(agent: AgentName, id: string): ExecutionRow {
    const { owner: agentOwner, id: agentId } = agent;
    const row = rows.find.get({ id });
    const grant = taskRows.grantTo.get({ executionId: id, agentOwner, agentId });
    if (row === undefined || grant === undefined) throw taskNotFound(id);
    return row;
  }

  return (
    agent: AgentName,
    reported: Reported,
    act: (row: ExecutionRow, touches: Touches) => void,
  ): Promise<Change<void>> =>
    writer.write(() => {
      const { taskId: executionId, leaseToken } = reported.report;
      const touched = new Touches();
      takers.require(agent);
      const row = requireGranted(agent, executionId);
      if (isRepeated(agent, reported)) return { result: undefined, touched };
      const claim = { agent, leaseToken, nowUs: clock.steadyUs() };
      if (!holdsLease(row, claim)) throw leaseLost(executionId);
      act(row, touched);
      const { owner: agentOwner, id: agentId } = agent;
      const { verb } = reported;
      taskRows.insertReport.run({ executionId, leaseToken, verb, agentOwner, agentId });
      return { result: undefined, touched };
    });
}

function taskNotFound(taskId: string): ServiceError {
  return new ServiceError("TASK_NOT_FOUND", "Task not found", { details: { taskId } });
}

function leaseLost(taskId: string): ServiceError {
  return new ServiceError("LEASE_LOST", "The attempt is over: drop the work", {
    details: { taskId },
  });
}
