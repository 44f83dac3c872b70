import type { AgentName } from "../../../domain/agent.ts";
import type { Change, Heartbeat, HeartbeatResult } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import { holdsLease } from "../executions/leases.ts";
import { Touches } from "../ledger.ts";
import type { TaskNeeds } from "./task-needs.ts";

export function createHeartbeats(
  { writer, clock }: SqliteContext,
  { rows, moves, content, takers }: TaskNeeds,
): (agent: AgentName, beats: readonly Heartbeat[]) => Promise<Change<readonly HeartbeatResult[]>> {
  function take(agent: AgentName, beat: Heartbeat): HeartbeatResult {
    const { taskId, leaseToken, progress } = beat;
    const row = rows.find.get({ id: taskId });
    const claim = { agent, leaseToken, nowUs: clock.steadyUs() };
    if (row === undefined || !holdsLease(row, claim)) {
      return { taskId, status: "lease_lost", leaseLeftUs: 0 };
    }
    const leaseUs = beat.leaseUs ?? row.leaseUs;
    moves.renew(row, leaseUs);
    if (progress !== undefined) content.write(row, "progress", progress);
    const status = row.cancelUs === null ? "ok" : "cancel_requested";
    return { taskId, status, leaseLeftUs: leaseUs };
  }

  return (agent, beats) =>
    writer.write(() => {
      takers.require(agent);
      return { result: beats.map((beat) => take(agent, beat)), touched: new Touches() };
    });
}
