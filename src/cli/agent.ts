import { isAgentId } from "../calls/auth/identity.ts";
import { runAgent } from "../client/agent.ts";
import { runCommand } from "../client/command-handler.ts";
import { agentCredentials } from "./agent-credentials.ts";
import { createAgentLines } from "./agent-lines.ts";
import { agentOptions, agentSettings } from "./agent-options.ts";
import { refusalOf } from "./call-failure.ts";
import { defineCommand } from "./command.ts";
import { exitCodes, UsageError } from "./exit.ts";
import { stopAsked } from "./signals.ts";

export const agent = defineCommand({
  takesProgram: true,
  options: agentOptions,
  notes: [
    "COMMAND is run for each task, with the task as JSON on stdin: id, attempt, input and, for a " +
      "workflow, workflowId, name, encryptedData, encryptionKey, payload. Its stdout is the " +
      "result: JSON, or else text. An exit code other than 0 is a failure, and is tried again. " +
      "COMMAND inherits the environment without SEALFLOW_*, and is killed with all that it " +
      "started when its task is cancelled or the lease is lost.",
    "Credentials are one of: a token; a client's id and secret; on the server's machine --sub.",
    "Ctrl-C or SIGTERM drains: no new tasks, those held are finished or given back. A second one " +
      "kills at once; what was held is granted again when its lease has run out.",
    "Exit codes: 0 drained, 1 failed or killed, 2 wrong usage, 3 the server refused the " +
      "credentials.",
  ],
  async run({ values, program }) {
    const settings = agentSettings(values);
    if (!isAgentId(settings.id)) {
      throw new UsageError(
        `--id must be 1 to 128 of A-Z a-z 0-9 . _ : - and not register, not ${settings.id}`,
      );
    }
    const credentials = await agentCredentials(values);
    const lines = createAgentLines(settings);
    const [drain, kill] = [new AbortController(), new AbortController()];
    stopAsked(() => {
      kill.abort();
      process.stderr.write(`${settings.id}: killed\n`);
      process.exit(exitCodes.failed);
    }).then(() => drain.abort());
    const run = runCommand(program, { reportStderr: values.reportStderr, killed: kill.signal });
    try {
      await runAgent(
        { ...settings, ...credentials, signal: drain.signal, onEvent: lines.onEvent },
        run,
      );
    } catch (error) {
      throw refusalOf(error);
    }
    lines.end();
    return exitCodes.done;
  },
});
