import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { closedLoop, VoidRound } from "../load/closed-loop.ts";
import type { GrpcConnection } from "../load/grpc-connection.ts";
import { pushBodies } from "../load/push-bodies.ts";
import { blockOf } from "../load/rpc.ts";
import { openSubscriber } from "../load/subscriber.ts";
import { unary } from "../load/unary.ts";
import { median, percentile, spreadOf } from "../measure/stats.ts";
import { figure } from "../measure/table.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { openConnections, startAlone } from "../servers/alone.ts";
import { identity } from "../servers/callers.ts";
import type { Server } from "../servers/server.ts";

/** How many subscribers of the owner who pushes, in turns. */
const audiences = [0, 1, 100] as const;
const connectionsMax = 10;
const push = blockOf(SyncService.method.pushState);
const bodies = pushBodies(1);

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
  readonly pushesPerSecond: number;
  /** From the push to the last subscriber; none without one. */
  readonly latenciesMs: readonly number[];
}

/** One writer; it pushes again when its push is answered and every subscriber has it. */
async function measure(
  bench: Bench,
  server: Server,
  {
    fields,
    audience,
  }: {
    readonly fields: ReturnType<typeof identity>;
    readonly audience: number;
  },
): Promise<Turn> {
  const count = connectionsMax + 1;
  const connectionOf = await openConnections(bench, server, { count, fields });
  let sentMs = 0;
  let missing = 0;
  let seen = Promise.withResolvers<void>();
  const latenciesMs: number[] = [];
  const changed = () => {
    missing -= 1;
    if (missing > 0) return;
    latenciesMs.push(performance.now() - sentMs);
    seen.resolve();
  };
  const subscribers = Array.from({ length: audience }, (_, i) =>
    openSubscriber(connectionOf(i % connectionsMax), { changed }),
  );
  await Promise.all(subscribers.map(({ upToDate }) => upToDate));
  const { seconds } = bench.settings;
  const answersMs: number[] = [];
  await closedLoop({ width: 1, seconds }, async () => {
    missing = audience;
    seen = Promise.withResolvers<void>();
    if (audience === 0) seen.resolve();
    sentMs = performance.now();
    await pushOnce(connectionOf(connectionsMax));
    answersMs.push(performance.now() - sentMs);
    await seen.promise;
  });
  for (let i = 0; i < count; i += 1) connectionOf(i).close();
  return { audience, pushesPerSecond: 1000 / median(answersMs), latenciesMs };
}

async function pushOnce(connection: GrpcConnection): Promise<void> {
  const answer = await unary(connection, push, bodies.next());
  if (!bodies.isAllCreated(answer)) throw new VoidRound("a record was not made");
}

function report(turns: readonly Turn[]) {
  const groups = audiences.map((audience) => turns.filter((turn) => turn.audience === audience));
  const alone = median((groups[0] ?? []).map(({ pushesPerSecond }) => pushesPerSecond));
  return {
    tables: [
      {
        title: "one writer, one push at a time, gRPC; ms from the push until the last has it",
        head: ["subscribers", "p50 ms", "p99 ms", "max ms", "writer push/s", "to none"],
        rows: groups.map((group, i) => {
          const latencies = group.flatMap(({ latenciesMs }) => latenciesMs);
          const rate = median(group.map(({ pushesPerSecond }) => pushesPerSecond));
          const times = latencies.length === 0 ? ["-", "-", "-"] : timesOf(latencies);
          return [`${audiences[i]}`, ...times, figure(rate), `x ${(rate / alone).toFixed(2)}`];
        }),
      },
    ],
    notes: ["writer push/s: 1 second by the median time of a push's own answer."],
    series: Object.fromEntries(
      groups.flatMap((group, i) => [
        [`${audiences[i]} subscribers latencyMs`, group.flatMap(({ latenciesMs }) => latenciesMs)],
        [
          `${audiences[i]} subscribers writerPushesPerSecond`,
          group.map(({ pushesPerSecond }) => pushesPerSecond),
        ],
      ]),
    ),
  };
}

function timesOf(latencies: readonly number[]): string[] {
  const { median: middle, max } = spreadOf(latencies);
  return [middle, percentile(latencies, 0.99), max].map(figure);
}
