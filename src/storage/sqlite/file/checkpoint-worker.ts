import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";
import { copyLog } from "./copy-log.ts";

// The thread of checkpoints.ts: copies the log of the database named by `workerData` into its file at each "copy", and
// answers what the log then holds, in pages; leaves at "end".
const connection = openConnection(workerData);

parentPort?.on("message", (request: "copy" | "end") => {
  if (request === "copy") {
    parentPort?.postMessage(copyLog(connection));
  } else {
    connection.close();
    parentPort?.close();
  }
});
