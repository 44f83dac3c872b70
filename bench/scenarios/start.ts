import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { spreadOf } from "../measure/stats.ts";
import { figure, mebibytes } from "../measure/table.ts";
import { usageOf } from "../measure/usage.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { httpPort } from "../servers/callers.ts";
import { startSealflow } from "../servers/sealflow.ts";

/** A process that has just started gives some of its memory back. */
const settleMs = 1_000;

export const start: Scenario = {
  name: "start",
  about: "from the command to the first answer, without a data directory, and the memory then",
  usesH2load: false,
  async run(bench) {
    const starts = [];
    for (let round = 0; round < bench.settings.rounds; round += 1) {
      starts.push(await startOnce(bench, join(bench.folder, `${round}`)));
    }
    const times = starts.map(({ ms }) => ms);
    const bytes = starts.map(({ rssBytes }) => rssBytes);
    const [time, memory] = [spreadOf(times), spreadOf(bytes)];
    return {
      tables: [
        {
          title: "a first start: keys and database are made",
          head: ["", "median", "min", "max"],
          rows: [
            ["to the first answer, ms", figure(time.median), figure(time.min), figure(time.max)],
            ["RSS, MiB", mebibytes(memory.median), mebibytes(memory.min), mebibytes(memory.max)],
          ],
        },
      ],
      notes: [],
      series: { "start ms": times, "start rssBytes": bytes },
    };
  },
};

async function startOnce(bench: Bench, folder: string) {
  const beganMs = performance.now();
  const server = bench.closers.use(await startSealflow(bench, folder));
  const answer = await fetch(`http://127.0.0.1:${httpPort(server)}/api/v1/workflows`);
  await answer.arrayBuffer();
  const ms = performance.now() - beganMs;
  // Without a token: it is the whole chain that refuses.
  if (answer.status !== 401) throw new Error(`the first answer is ${answer.status}`);
  await pause(settleMs);
  const { rssBytes } = await usageOf(server.pid);
  await server[Symbol.asyncDispose]();
  return { ms, rssBytes };
}
