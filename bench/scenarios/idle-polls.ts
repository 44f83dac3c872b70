import { setTimeout as pause } from "node:timers/promises";
import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import type { GrpcConnection } from "../load/grpc-connection.ts";
import { pollProbe, timeCalls } from "../load/probe.ts";
import { blockOf, encoded } from "../load/rpc.ts";
import { median, percentile } from "../measure/stats.ts";
import { figure, mebibytes, type Table } from "../measure/table.ts";
import { usageOf } from "../measure/usage.ts";
import type { Bench, Finding, Scenario } from "../scenario.ts";
import { openConnections, startAlone } from "../servers/alone.ts";
import { identity } from "../servers/callers.ts";
import { fillAgents } from "../servers/fill.ts";
import { fillQueues, matchingNone, queueOwner } from "../servers/queues.ts";

const owner = "bench";
const pollCount = 1000;
const connections = 20;
/** The polls are watched for so many times the length of a round: 60 s by default. */
const roundsLong = 12;
const settleMs = 3_000;
const agents = Array.from({ length: pollCount }, (_, i) => ({
  id: `agent-${i}`,
  capabilities: ["text"],
}));
const queued = [100, 100_000] as const;

export const idlePolls: Scenario = {
  name: "idle-polls",
  about: "1,000 open polls of 1,000 agents; a poll that may take nothing of a long queue",
  usesH2load: false,
  async run(bench): Promise<Finding> {
    const idle = await measureIdle(bench);
    const times = new Map<number, number[]>();
    for (const count of queued) times.set(count, await measureQueue(bench, count));
    return {
      tables: [idle.table, queueTable(times)],
      notes: idle.notes,
      series: {
        ...idle.series,
        ...Object.fromEntries([...times].map(([count, its]) => [`${count} queued poll us`, its])),
      },
    };
  },
};

async function measureIdle(bench: Bench) {
  const { server, data } = await startAlone(bench, {
    name: "idle",
    fill: (store) => fillAgents(store, owner, agents),
  });
  const connectionOf = await openConnections(bench, server, { count: connections, fields: [] });
  const fresh = await usageOf(server.pid);
  const polls = new OpenPolls(await data.token(owner));
  for (const [i, { id }] of agents.entries()) polls.keepOpen(connectionOf(i), id);
  await pause(settleMs);
  const seconds = bench.settings.seconds * roundsLong;
  bench.say(`${pollCount} polls are open; watching them for ${seconds} s`);
  const before = await usageOf(server.pid);
  await pause(seconds * 1000);
  const after = await usageOf(server.pid);
  const failures = polls.stop();
  await server[Symbol.asyncDispose]();
  const cpuPercent = (after.cpuMs - before.cpuMs) / seconds / 10;
  const row = [fresh.rssBytes, before.rssBytes, after.rssBytes].map(mebibytes);
  return {
    table: {
      title: `${pollCount} open polls of ${pollCount} agents of one owner, for ${seconds} s`,
      head: ["", "CPU %", "RSS MiB without", "with, at start", "at end", "polls answered"],
      rows: [["sealflow", figure(cpuPercent), ...row, `${polls.answered}`]],
    } satisfies Table,
    notes: failures === 0 ? [] : [`${failures} polls have failed: this does not count.`],
    series: {
      "idle cpuPercent": [cpuPercent],
      "idle rssBytes": [fresh.rssBytes, before.rssBytes, after.rssBytes],
    },
  };
}

/** Polls that are asked again as soon as they are answered. */
class OpenPolls {
  answered = 0;
  #failed = 0;
  #isOver = false;
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  keepOpen(connection: GrpcConnection, agentId: string): void {
    const { pollTasks } = AgentService.method;
    const block = blockOf(pollTasks, identity(this.#token, agentId));
    const request = encoded(pollTasks.input, { wait: { seconds: 30n, nanos: 0 } });
    let isAnswered = false;
    connection.call(block, request, {
      message: () => {
        isAnswered = true;
      },
      end: () => {
        if (this.#isOver) return;
        if (!isAnswered) {
          this.#failed += 1;
          return;
        }
        this.answered += 1;
        this.keepOpen(connection, agentId);
      },
    });
  }

  /** How many have failed until now. */
  stop(): number {
    this.#isOver = true;
    return this.#failed;
  }
}

async function measureQueue(bench: Bench, count: number): Promise<number[]> {
  bench.say(`filling in ${count} queued executions`);
  const { server, data } = await startAlone(bench, {
    name: `queued-${count}`,
    async fill(store, connection) {
      await fillQueues(store, connection, count);
      await fillAgents(store, queueOwner(0), [matchingNone]);
    },
  });
  const fields = identity(await data.token(queueOwner(0)), matchingNone.id);
  const connectionOf = await openConnections(bench, server, { count: 1, fields });
  const times = await timeCalls(pollProbe(connectionOf(0)).call);
  await server[Symbol.asyncDispose]();
  return times;
}

function queueTable(times: ReadonlyMap<number, readonly number[]>): Table {
  const least = median(times.get(queued[0]) ?? []);
  return {
    title: "a poll that may take nothing, 100 sets of capabilities, at most 10,000 of one owner",
    head: ["queued", "median us", "p99 us", "to the first"],
    rows: [...times].map(([count, its]) => [
      count.toLocaleString("en-US"),
      figure(median(its)),
      figure(percentile(its, 0.99)),
      `x ${(median(its) / least).toFixed(2)}`,
    ]),
  };
}
