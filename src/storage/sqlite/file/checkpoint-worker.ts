import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";
import { copyLog, type LogState, longLogPages } from "./copy-log.ts";

// The thread of checkpoints.ts: copies the log of the database named by `workerData` into its file
// at each "copy", and answers how it stands then; leaves at "end".

/** What the main thread may copy by itself: some 10 ms. */
const fewPages = 500;
const passesMax = 5;

const connection = openConnection(workerData);

parentPort?.on("message", (request: "copy" | "end") => {
  if (request === "copy") {
    parentPort?.postMessage(copyMost());
  } else {
    connection.close();
    parentPort?.close();
  }
});

/** While others write, each pass leaves what came meanwhile, and the next one takes less time. */
function copyMost(): LogState {
  let state = copyLog(connection);
  for (let pass = 1; pass < passesMax && state.length > longLogPages; pass += 1) {
    const before = state.length;
    state = copyLog(connection);
    if (state.length - before < fewPages) break;
  }
  return state;
}
