import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { VoidRound } from "../load/closed-loop.ts";
import type { GrpcConnection } from "../load/grpc-connection.ts";
import { callRpc } from "../load/rpc.ts";
import { spreadOf } from "../measure/stats.ts";
import { figure } from "../measure/table.ts";
import { usageOf } from "../measure/usage.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { openConnections, startAlone } from "../servers/alone.ts";
import { identity } from "../servers/callers.ts";
import { fillAgents, fillQueue, queueMax } from "../servers/fill.ts";
import type { Server } from "../servers/server.ts";

const agentCount = 32;
const agents = Array.from({ length: agentCount }, (_, i) => `agent-${i}`);

export const taskPairs: Scenario = {
  name: "task-pairs",
  about: `PollTasks and CompleteTask, ${agentCount} agents of one owner, a full queue`,
  usesH2load: false,
  async run(bench) {
    const { rounds } = bench.settings;
    // A round uses up the queue of an owner; the first one only warms up.
    const owners = Array.from({ length: rounds + 1 }, (_, i) => `bench-${i}`);
    bench.say(`filling in ${owners.length} queues`);
    const { server, data } = await startAlone(bench, {
      name: "sealflow",
      async fill(store) {
        const registrations = agents.map((id) => ({ id, capabilities: ["text"] }));
        for (const owner of owners) {
          await fillAgents(store, owner, registrations);
          await fillQueue(store, { owner, count: queueMax }, [["text"]]);
        }
      },
    });
    const measured = [];
    for (const owner of owners) {
      bench.say(`queue ${measured.length + 1} of ${owners.length}`);
      measured.push(await measure(bench, server, await data.token(owner)));
    }
    const counted = measured.slice(1);
    const rate = spreadOf(counted.map(({ perSecond }) => perSecond));
    const cpu = spreadOf(counted.map(({ cpuUs }) => cpuUs));
    return {
      tables: [
        {
          title: `PollTasks and CompleteTask, gRPC, ${agentCount} agents on a connection each`,
          head: ["", "pair/s", "min", "max", "CPU us a pair"],
          rows: [
            [
              "sealflow",
              figure(rate.median),
              figure(rate.min),
              figure(rate.max),
              figure(cpu.median),
            ],
          ],
        },
      ],
      notes: [],
      series: {
        "sealflow pairsPerSecond": counted.map(({ perSecond }) => perSecond),
        "sealflow cpuUs": counted.map(({ cpuUs }) => cpuUs),
      },
    };
  },
};

/** Until the time is over or the queue is empty, whichever comes first. */
async function measure(bench: Bench, server: Server, token: string) {
  const connections: GrpcConnection[] = [];
  for (const id of agents) {
    const connectionOf = await openConnections(bench, server, {
      count: 1,
      fields: identity(token, id),
    });
    connections.push(connectionOf(0));
  }
  const before = await usageOf(server.pid);
  const beganMs = performance.now();
  const endMs = beganMs + bench.settings.seconds * 1000;
  let lastMs = beganMs;
  let pairs = 0;
  const work = async (connection: GrpcConnection) => {
    while (performance.now() < endMs && (await runOne(connection))) {
      pairs += 1;
      lastMs = performance.now();
    }
  };
  await Promise.all(connections.map(work));
  const { cpuMs } = await usageOf(server.pid);
  for (const connection of connections) connection.close();
  if (pairs === 0) throw new VoidRound("no task was granted");
  return {
    perSecond: (pairs * 1000) / (lastMs - beganMs),
    cpuUs: ((cpuMs - before.cpuMs) * 1000) / pairs,
  };
}

/** False when there was nothing to do. */
async function runOne(connection: GrpcConnection): Promise<boolean> {
  const { pollTasks, completeTask } = AgentService.method;
  const { tasks } = await callRpc(connection, pollTasks, {
    maxTasks: 1,
    wait: { seconds: 0n, nanos: 0 },
  });
  const [task] = tasks;
  if (task === undefined) return false;
  await callRpc(connection, completeTask, {
    taskId: task.id,
    leaseToken: task.leaseToken,
    output: '{"words":6}',
  });
  return true;
}
