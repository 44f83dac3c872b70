import { createLog, describeFault } from "../calls/log.ts";
import type { ServerConfig } from "../config.ts";
import type { RunningServer } from "../server.ts";
import { systemClock } from "./clock.ts";
import { defineCommand } from "./command.ts";
import { CommandError, exitCodes } from "./exit.ts";
import { announceHolder } from "./holder.ts";
import { listenerOf } from "./listener.ts";
import { serveConfig } from "./serve-config.ts";
import { isLocal, plaintextWarning, startText } from "./serve-messages.ts";
import { serveOptions } from "./serve-options.ts";
import { stopAsked } from "./signals.ts";

/** A stop that takes longer is explained. */
const quietStopMs = 500;

export const serve = defineCommand({
  options: serveOptions,
  notes: [
    "Logs are JSON lines on stderr. SIGTERM or Ctrl-C lets what runs finish, up to 10 s, and " +
      "ends with 0; a second one ends at once with 1. It also ends with 1 when its database can no " +
      "longer be written: start it again.",
  ],
  async run({ values }) {
    const config = serveConfig(values);
    if (!isLocal(config.host) && !values.plaintext) writeError(plaintextWarning(config.host));
    logCrashes();
    // Before the server starts: whoever reads that it serves may stop it at once.
    const stop = stopAsked(() => process.exit(exitCodes.failed));
    const server = await start(config);
    let holder: Disposable | undefined;
    let hasFailed = false;
    try {
      holder = announceHolder(config.databasePath, server);
      process.stdout.write(startText(config, server));
      hasFailed = await Promise.race([stop.then(() => false), server.failed.then(() => true)]);
    } finally {
      await end(server);
      // Until now the database was held.
      holder?.[Symbol.dispose]();
    }
    return hasFailed ? exitCodes.failed : exitCodes.done;
  },
});

async function end(server: RunningServer): Promise<void> {
  const timer = setTimeout(writeError, quietStopMs, "Stopping. Once more to stop at once.\n");
  await server[Symbol.asyncDispose]();
  clearTimeout(timer);
}

async function start(config: ServerConfig): Promise<RunningServer> {
  // All of the service takes a while to load: not for help, nor for a wrong option.
  const { PortInUseError } = await import("../doors/listening.ts");
  const { startServer } = await import("../server.ts");
  try {
    return await startServer(config, {
      clock: systemClock(),
      random: Math.random,
      writeLog: writeError,
    });
  } catch (cause) {
    if (!(cause instanceof PortInUseError)) throw cause;
    const { port, flag } = cause;
    const by = listenerOf(port);
    throw new CommandError(
      `port ${port} is in use${by === undefined ? "" : ` by ${by}`}. ` +
        `Choose another with --${flag}, or 0 for any free one`,
      { cause },
    );
  }
}

/** A fault that nobody caught ends the server, and says so as all logs do. */
function logCrashes(): void {
  const log = createLog(writeError, () => new Date());
  process.once("uncaughtException", (cause) => {
    log("error", "the server crashed", { fault: describeFault(cause) });
    process.exit(exitCodes.failed);
  });
}

function writeError(text: string): void {
  process.stderr.write(text);
}
