import { parseArgs } from "node:util";
import { faultNames, play } from "./play.ts";

const usage = `npm run chaos -- [--histories N] [--seed N] [--seconds N] [--speed N] [--faults LIST]
                 [--callers N] [--main PATH]

Plays histories of faults against real servers and checks what their callers saw.

  --histories N  how many; default 10
  --seed N       of the first; the others follow. Default: drawn
  --seconds N    how long the faults of a history go on, in real seconds; default 12
  --speed N      how many service seconds pass in a real one; default 5
  --faults LIST  which faults, of ${faultNames.join(",")}; default: all
  --callers N    how many clients, and as many agents; default 4
  --main PATH    the server's main.ts or main.js; default: this checkout's main.ts
`;

const { values } = parseArgs({
  options: {
    histories: { type: "string", default: "10" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    seconds: { type: "string", default: "12" },
    speed: { type: "string", default: "5" },
    faults: { type: "string", default: faultNames.join(",") },
    callers: { type: "string", default: "4" },
    main: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) {
  process.stdout.write(usage);
} else {
  const first = Number(values.seed);
  const [seconds, speed] = [Number(values.seconds), Number(values.speed)];
  const faults = faultNames.filter((name) => values.faults.split(",").includes(name));
  const failing: number[] = [];
  for (let seed = first; seed < first + Number(values.histories); seed++) {
    const options = { seed, seconds, speed, faults, callers: Number(values.callers) };
    const played = await play(
      values.main === undefined ? options : { ...options, main: values.main },
    );
    const counts = Object.entries(played.counts).map(([name, count]) => `${name} ${count}`);
    process.stdout.write(`seed ${seed}: ${counts.join(", ")}\n`);
    for (const violation of played.violations) process.stdout.write(`  VIOLATION ${violation}\n`);
    if (played.violations.length > 0) failing.push(seed);
  }
  if (failing.length > 0) {
    process.stdout.write(`failing seeds: ${failing.join(", ")}\n`);
    process.exitCode = 1;
  } else {
    process.stdout.write("0 violations\n");
  }
  // Connections of callers that were cut off may linger.
  process.exit();
}
