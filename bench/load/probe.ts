import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { VoidRound } from "./closed-loop.ts";
import type { GrpcConnection } from "./grpc-connection.ts";
import { callRpc } from "./rpc.ts";

/** A call whose own time is measured, with nothing else under way. */
export interface Probe {
  readonly name: string;
  /** One call; throws VoidRound when the answer is not right. */
  call(): Promise<void>;
}

const callsEach = 300;
const warmUpCalls = 50;
const noWait = { seconds: 0n, nanos: 0 };

/** A poll of an agent that may take nothing of what is queued. */
export function pollProbe(connection: GrpcConnection): Probe {
  return {
    name: "poll, nothing matches",
    async call() {
      const request = { maxTasks: 1, wait: noWait };
      const { tasks } = await callRpc(connection, AgentService.method.pollTasks, request);
      if (tasks.length > 0) throw new VoidRound("a task was granted");
    },
  };
}

/** How long each call took, in microseconds. */
export async function timeCalls(call: () => Promise<void>): Promise<number[]> {
  for (let i = 0; i < warmUpCalls; i += 1) await call();
  const times: number[] = [];
  for (let i = 0; i < callsEach; i += 1) {
    const beganMs = performance.now();
    await call();
    times.push((performance.now() - beganMs) * 1000);
  }
  return times;
}
