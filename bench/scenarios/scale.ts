import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import { writePageToken } from "../../src/services/page-token.ts";
import { VoidRound } from "../load/closed-loop.ts";
import type { GrpcConnection } from "../load/grpc-connection.ts";
import { type Probe, pollProbe, timeCalls } from "../load/probe.ts";
import { callRpc } from "../load/rpc.ts";
import { median, percentile } from "../measure/stats.ts";
import { figure } from "../measure/table.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { openConnections, startAlone } from "../servers/alone.ts";
import { identity } from "../servers/callers.ts";
import { fillAgents, fillRecords, fillWorkflows, workflowName } from "../servers/fill.ts";
import { fillQueues, matchingNone, queueOwner } from "../servers/queues.ts";

const owner = "bench";
const page = 20;
const pulled = 100;

export const scale: Scenario = {
  name: "scale",
  about: "list, pull and poll, one call at a time, as the rows grow (--sizes)",
  usesH2load: false,
  async run(bench) {
    const columns: { readonly size: number; readonly times: ReadonlyMap<string, number[]> }[] = [];
    for (const size of bench.settings.sizes) {
      columns.push({ size, times: await measureAt(bench, size) });
    }
    const names = [...(columns[0]?.times.keys() ?? [])];
    const heads = columns.map(({ size }) => `${size.toLocaleString("en-US")} rows`);
    return {
      tables: [
        {
          title: "time of one call, gRPC, one at a time: median (p99), us",
          head: ["", ...heads],
          rows: names.map((name) => [
            name,
            ...columns.map(({ times }) => {
              const its = times.get(name) ?? [];
              return `${figure(median(its))} (${figure(percentile(its, 0.99))})`;
            }),
          ]),
        },
      ],
      notes: ["rows: so many workflows and so many records of one owner, so many queued in all."],
      series: Object.fromEntries(
        columns.flatMap(({ size, times }) =>
          [...times].map(([name, its]) => [`${size} ${name} us`, its] as const),
        ),
      ),
    };
  },
};

async function measureAt(bench: Bench, size: number): Promise<ReadonlyMap<string, number[]>> {
  let middle = 0;
  const beganMs = performance.now();
  const { server, data } = await startAlone(bench, {
    name: `sealflow-${size}`,
    async fill(store, connection) {
      bench.say(`filling in ${size} workflows, records and executions`);
      await fillWorkflows(store, { owner, count: size });
      middle = await fillRecords(store, { owner, count: size });
      await fillQueues(store, connection, size);
      await fillAgents(store, queueOwner(0), [matchingNone]);
    },
  });
  bench.say(`filled in within ${figure((performance.now() - beganMs) / 1000)} s`);
  const open = async (who: string, agentId: string) => {
    const fields = identity(await data.token(who), agentId);
    return (await openConnections(bench, server, { count: 1, fields }))(0);
  };
  const times = new Map<string, number[]>();
  const probes = [
    ...(await readProbes(await open(owner, "bench"), { size, middle })),
    pollProbe(await open(queueOwner(0), matchingNone.id)),
  ];
  for (const { name, call } of probes) times.set(name, await timeCalls(call));
  await server[Symbol.asyncDispose]();
  return times;
}

async function readProbes(
  connection: GrpcConnection,
  { size, middle }: { readonly size: number; readonly middle: number },
): Promise<readonly Probe[]> {
  const { getWorkflow, listWorkflows } = WorkflowService.method;
  const id = workflowName(Math.floor(size / 2));
  const { createdAt } = await callRpc(connection, getWorkflow, { id });
  const createdUs = Number(createdAt?.seconds ?? 0n) * 1e6 + (createdAt?.nanos ?? 0) / 1000;
  const pageToken = writePageToken("workflows ", { createdUs, id });
  const list = async (token: string) => {
    const request = { limit: page, pageToken: token };
    const { workflows, total } = await callRpc(connection, listWorkflows, request);
    if (workflows.length !== page || total !== size) throw new VoidRound("a wrong page");
  };
  const pull = async (since: number) => {
    const request = { since: BigInt(since), limit: pulled };
    const { records } = await callRpc(connection, SyncService.method.pullState, request);
    if (records.length !== pulled) throw new VoidRound("a wrong page");
  };
  return [
    {
      name: "get",
      call: async () => void (await callRpc(connection, getWorkflow, { id })),
    },
    { name: `list ${page}, newest`, call: () => list("") },
    { name: `list ${page}, from the middle`, call: () => list(pageToken) },
    { name: `pull ${pulled}, from the start`, call: () => pull(0) },
    { name: `pull ${pulled}, from the middle`, call: () => pull(middle) },
  ];
}
