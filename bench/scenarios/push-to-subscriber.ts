import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import type { Heard, Seats } from "../load/audience.ts";
import { closedLoop, VoidRound } from "../load/closed-loop.ts";
import type { GrpcConnection } from "../load/grpc-connection.ts";
import { pushBodies } from "../load/push-bodies.ts";
import { blockOf } from "../load/rpc.ts";
import { unary } from "../load/unary.ts";
import { median, percentile, spreadOf } from "../measure/stats.ts";
import { figure } from "../measure/table.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { openConnections, startAlone } from "../servers/alone.ts";
import { grpcPort, identity } from "../servers/callers.ts";
import { Child } from "../servers/child.ts";
import type { Server } from "../servers/server.ts";

/** How many subscribers of the owner who pushes, in turns. */
const audiences = [0, 1, 100] as const;
const connectionsMax = 10;
const pauseMs = 5;
const push = blockOf(SyncService.method.pushState);
const bodies = pushBodies(1);
const audienceProgram = fileURLToPath(new URL("../load/audience.ts", import.meta.url));

export const pushToSubscriber: Scenario = {
  name: "push-to-subscriber",
  about: "how long until a push reaches a subscriber, and what 100 of them cost the writer",
  usesH2load: false,
  async run(bench) {
    const { server, data } = await startAlone(bench, { name: "sealflow", fill: async () => {} });
    const fields = identity(await data.token("bench"));
    const turns: Turn[] = [];
    for (let round = 0; round <= bench.settings.rounds; round += 1) {
      bench.say(`round ${round} of ${bench.settings.rounds}`);
      for (const audience of audiences) {
        const turn = await measure(bench, server, { fields, audience });
        // The first round only warms up.
        if (round > 0) turns.push(turn);
      }
    }
    return report(turns);
  },
};

interface Turn {
  readonly audience: number;
  /** Of the same pushes, until their own answer. */
  readonly answersMs: readonly number[];
  /** While it pushes all the time, whoever has heard it. */
  readonly pushesPerSecond: number;
  /** Of pushes apart from one another, until the last subscriber; none without one. */
  readonly latenciesMs: readonly number[];
}

interface Setting {
  readonly fields: ReturnType<typeof identity>;
  readonly audience: number;
}

async function measure(bench: Bench, server: Server, setting: Setting): Promise<Turn> {
  const { fields, audience } = setting;
  const { folder, settings } = bench;
  const connectionOf = await openConnections(bench, server, { count: 1, fields });
  const writer = connectionOf(0);
  await using subscribers = new Child([audienceProgram], { folder, stdout: "file" });
  const listening = await seat(subscribers, {
    port: grpcPort(server),
    fields,
    count: audience,
    connections: Math.min(audience, connectionsMax),
  });
  const latenciesMs: number[] = [];
  const answersMs: number[] = [];
  const paced = async () => {
    const sentNs = process.hrtime.bigint();
    await pushOnce(writer);
    answersMs.push(Number(process.hrtime.bigint() - sentNs) / 1e6);
    if (audience > 0) latenciesMs.push(Number((await listening.next()) - sentNs) / 1e6);
    // A moment in which nobody does anything.
    await setTimeout(pauseMs);
  };
  await closedLoop({ width: 1, seconds: settings.seconds }, paced);
  const { count, seconds } = await closedLoop({ width: 1, seconds: settings.seconds }, () =>
    pushOnce(writer),
  );
  writer.close();
  return { audience, answersMs, pushesPerSecond: count / seconds, latenciesMs };
}

/** When the last subscriber had the next change, in ns by the monotonic clock. */
interface Listening {
  next(): Promise<bigint>;
}

/** Resolves when all subscribers are up to date. */
async function seat(subscribers: Child, seats: Seats): Promise<Listening> {
  const heard: bigint[] = [];
  let tell: ((atNs: bigint) => void) | undefined;
  const ready = new Promise<void>((resolve) => {
    subscribers.process.on("message", (message: Heard) => {
      if (message === "ready") return resolve();
      const atNs = BigInt(message.atNs);
      if (tell === undefined) heard.push(atNs);
      else tell(atNs);
      tell = undefined;
    });
  });
  subscribers.process.send(seats);
  await subscribers.until(ready);
  return {
    next() {
      const atNs = heard.shift();
      if (atNs !== undefined) return Promise.resolve(atNs);
      return new Promise((resolve) => {
        tell = resolve;
      });
    },
  };
}

async function pushOnce(connection: GrpcConnection): Promise<void> {
  const answer = await unary(connection, push, bodies.next());
  if (!bodies.isAllCreated(answer)) throw new VoidRound("a record was not made");
}

function report(turns: readonly Turn[]) {
  const groups = audiences.map((audience) => {
    const own = turns.filter((turn) => turn.audience === audience);
    return {
      audience,
      latenciesMs: own.flatMap(({ latenciesMs }) => latenciesMs),
      answersMs: own.flatMap(({ answersMs }) => answersMs),
      rates: own.map(({ pushesPerSecond }) => pushesPerSecond),
    };
  });
  const [alone] = groups;
  if (alone === undefined) throw new RangeError("no turns");
  return {
    tables: [
      {
        title: "one writer, gRPC; ms from the push until the last subscriber has it",
        head: [
          ...["subscribers", "p50 ms", "p99 ms", "max ms"],
          ...["answer p50 ms", "to none", "flat out push/s", "to none"],
        ],
        rows: groups.map(({ audience, latenciesMs, answersMs, rates }) => [
          String(audience),
          ...(latenciesMs.length === 0 ? ["-", "-", "-"] : timesOf(latenciesMs)),
          figure(median(answersMs)),
          ratio(median(alone.answersMs), median(answersMs)),
          figure(median(rates)),
          ratio(median(rates), median(alone.rates)),
        ]),
      },
    ],
    notes: [
      `ms: of pushes that wait for the last subscriber, and for ${pauseMs} ms in which nobody works.`,
      "Flat out: each push waits for the answer of the one before, and for no subscriber.",
      "The subscribers are a process of their own: with the writer and the server they are three.",
    ],
    series: Object.fromEntries(
      groups.flatMap(({ audience, latenciesMs, answersMs, rates }) => [
        [`${audience} subscribers latencyMs`, latenciesMs],
        [`${audience} subscribers answerMs`, answersMs],
        [`${audience} subscribers flatOutPushesPerSecond`, rates],
      ]),
    ),
  };
}

function ratio(a: number, b: number): string {
  return `x ${(a / b).toFixed(2)}`;
}

function timesOf(latencies: readonly number[]): string[] {
  const { median: middle, max } = spreadOf(latencies);
  return [middle, percentile(latencies, 0.99), max].map(figure);
}
