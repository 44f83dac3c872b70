import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Loaded before the server (`node --import`): at SIGUSR2 it collects garbage and says what is left. */
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

process.on("SIGUSR2", () => {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  process.stderr.write(`memory in use: ${heapUsed + external}\n`);
});
