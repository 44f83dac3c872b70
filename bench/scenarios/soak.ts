import { setTimeout as pause } from "node:timers/promises";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import { closedLoop, VoidRound } from "../load/closed-loop.ts";
import type { GrpcConnection } from "../load/grpc-connection.ts";
import { pushBodies } from "../load/push-bodies.ts";
import { blockOf, encoded } from "../load/rpc.ts";
import { unary } from "../load/unary.ts";
import { figure, mebibytes } from "../measure/table.ts";
import { usageOf } from "../measure/usage.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { openConnections, startAlone } from "../servers/alone.ts";
import { identity } from "../servers/callers.ts";
import { fillWorkflows, workflowName } from "../servers/fill.ts";
import type { Server } from "../servers/server.ts";

const owner = "bench";
const workflowCount = 10_000;
const connections = 4;
const width = 32;
const sampleMs = 5_000;
const minuteMs = 60_000;

interface Sample {
  readonly minute: number;
  readonly rssBytes: number;
  readonly calls: number;
}

export const soak: Scenario = {
  name: "soak",
  about: "memory after 1 and after --minutes of full load: get, list and push",
  usesH2load: false,
  async run(bench) {
    const { server, data } = await startAlone(bench, {
      name: "sealflow",
      fill: (store) => fillWorkflows(store, { owner, count: workflowCount }),
    });
    const fields = identity(await data.token(owner));
    const connectionOf = await openConnections(bench, server, { count: connections, fields });
    const samples = await loadFor(bench, server, connectionOf);
    const minutes = Map.groupBy(samples, ({ minute }) => minute);
    const rows = [...minutes].map(([minute, its]) => {
      const rss = its.map(({ rssBytes }) => rssBytes);
      const calls = its.reduce((sum, sample) => sum + sample.calls, 0);
      return [
        `${minute}`,
        mebibytes(its.at(-1)?.rssBytes ?? 0),
        mebibytes(Math.max(...rss)),
        figure((calls * 1000) / (its.length * sampleMs)),
      ];
    });
    return {
      tables: [
        {
          title: `full load, gRPC, ${width} calls at a time: get, list, push in equal parts`,
          head: ["minute", "RSS MiB at its end", "most", "call/s"],
          rows,
        },
      ],
      notes: [],
      series: {
        rssBytes: samples.map(({ rssBytes }) => rssBytes),
        callsPerSample: samples.map(({ calls }) => calls),
      },
    };
  },
};

async function loadFor(
  bench: Bench,
  server: Server,
  connectionOf: (caller: number) => GrpcConnection,
): Promise<readonly Sample[]> {
  const { minutes } = bench.settings;
  const calls = callKinds();
  let count = 0;
  const samples: Sample[] = [];
  const seconds = (minutes * minuteMs) / 1000;
  const load = closedLoop({ width, seconds }, async (caller) => {
    const call = calls[caller % calls.length];
    await call?.(connectionOf(caller));
    count += 1;
  });
  const sampling = (async () => {
    for (let taken = 0; taken * sampleMs < minutes * minuteMs; taken += 1) {
      await pause(sampleMs);
      const { rssBytes } = await usageOf(server.pid);
      samples.push({
        minute: Math.floor((taken * sampleMs) / minuteMs) + 1,
        rssBytes,
        calls: count,
      });
      count = 0;
      if (samples.length % 12 === 0)
        bench.say(`minute ${samples.length / 12}: ${mebibytes(rssBytes)} MiB`);
    }
  })();
  await Promise.all([load, sampling]);
  return samples;
}

type CallOnce = (connection: GrpcConnection) => Promise<void>;

function callKinds(): readonly CallOnce[] {
  const { getWorkflow, listWorkflows } = WorkflowService.method;
  const get = [
    blockOf(getWorkflow),
    encoded(getWorkflow.input, { id: workflowName(workflowCount / 2) }),
  ] as const;
  const list = [blockOf(listWorkflows), encoded(listWorkflows.input, { limit: 20 })] as const;
  const push = blockOf(SyncService.method.pushState);
  const bodies = pushBodies(1);
  return [
    async (connection) => void (await unary(connection, ...get)),
    async (connection) => void (await unary(connection, ...list)),
    async (connection) => {
      const answer = await unary(connection, push, bodies.next());
      if (!bodies.isAllCreated(answer)) throw new VoidRound("a record was not made");
    },
  ];
}
