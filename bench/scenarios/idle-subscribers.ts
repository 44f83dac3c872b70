import { setTimeout as pause } from "node:timers/promises";
import { openSubscriber } from "../load/subscriber.ts";
import { figure, mebibytes } from "../measure/table.ts";
import { usageOf } from "../measure/usage.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { openConnections, startAlone } from "../servers/alone.ts";
import { identity } from "../servers/callers.ts";

const shapes = [
  { streams: 1_000, connections: 10 },
  { streams: 10_000, connections: 50 },
] as const;
/** Opened at a time: each has a token of its own, which the server verifies. */
const together = 200;
const settleMs = 3_000;
/** Watched for so many times the length of a round: 60 s by default, four heartbeats. */
const roundsLong = 12;

export const idleSubscribers: Scenario = {
  name: "idle-subscribers",
  about: "1,000 and 10,000 idle Subscribe streams of as many owners, with heartbeats",
  usesH2load: false,
  async run(bench) {
    const measured = [];
    for (const shape of shapes) measured.push(await measure(bench, shape));
    return {
      tables: [
        {
          title: "idle streams over gRPC, each of an owner of its own, a heartbeat every 15 s",
          head: [
            "streams",
            "connections",
            "RSS MiB without",
            "added",
            "KiB a stream",
            "at end",
            "CPU %",
          ],
          rows: measured.map(({ shape, freshBytes, openBytes, endBytes, cpuPercent }) => [
            shape.streams.toLocaleString("en-US"),
            `${shape.connections}`,
            mebibytes(freshBytes),
            mebibytes(openBytes - freshBytes),
            figure((openBytes - freshBytes) / shape.streams / 1024),
            mebibytes(endBytes),
            figure(cpuPercent),
          ]),
        },
      ],
      notes: measured.flatMap(({ shape, ended }) =>
        ended === 0
          ? []
          : [`${ended} of ${shape.streams} streams have ended: this does not count.`],
      ),
      series: Object.fromEntries(
        measured.flatMap(({ shape, freshBytes, openBytes, endBytes, cpuPercent }) => [
          [`${shape.streams} streams rssBytes`, [freshBytes, openBytes, endBytes]],
          [`${shape.streams} streams cpuPercent`, [cpuPercent]],
        ]),
      ),
    };
  },
};

async function measure(bench: Bench, shape: (typeof shapes)[number]) {
  const { streams, connections } = shape;
  const { server, data } = await startAlone(bench, {
    name: `sealflow-${streams}`,
    fill: async () => {},
  });
  const connectionOf = await openConnections(bench, server, { count: connections, fields: [] });
  const freshBytes = (await usageOf(server.pid)).rssBytes;
  const subscribers: ReturnType<typeof openSubscriber>[] = [];
  for (let from = 0; from < streams; from += together) {
    for (let i = from; i < Math.min(streams, from + together); i += 1) {
      const fields = identity(await data.token(`owner-${i}`));
      subscribers.push(openSubscriber(connectionOf(i), { fields }));
    }
    await Promise.all(subscribers.slice(from).map(({ upToDate }) => upToDate));
  }
  await pause(settleMs);
  const seconds = bench.settings.seconds * roundsLong;
  bench.say(`${streams} streams are open; watching them for ${seconds} s`);
  const open = await usageOf(server.pid);
  await pause(seconds * 1000);
  const end = await usageOf(server.pid);
  const ended = subscribers.filter(({ hasEnded }) => hasEnded()).length;
  for (let i = 0; i < connections; i += 1) connectionOf(i).close();
  await server[Symbol.asyncDispose]();
  return {
    shape,
    ended,
    freshBytes,
    openBytes: open.rssBytes,
    endBytes: end.rssBytes,
    cpuPercent: (end.cpuMs - open.cpuMs) / seconds / 10,
  };
}
