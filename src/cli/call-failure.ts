import { ConnectError } from "@connectrpc/connect";
import { reasonOf } from "../client/error-reason.ts";
import { CommandError, exitCodes, UsageError } from "./exit.ts";

/** A call that the server refused for good, as the failure of the command. */
export function refusalOf(error: unknown): Error {
  const line = causeOf(error);
  switch (reasonOf(error)?.reason) {
    case "VALIDATION_ERROR":
      return new UsageError(line);
    case "UNAUTHORIZED":
    case "FORBIDDEN":
      return new CommandError(`the server refused the credentials: ${line}`, {
        cause: error,
        exitCode: exitCodes.refused,
      });
    default:
      return new CommandError(line, { cause: error });
  }
}

/** Why a call failed: the server's words, or what the network says. */
export function causeOf(error: unknown): string {
  if (reasonOf(error) === undefined) {
    const code = networkCode(error);
    if (code === "ECONNREFUSED") return "nothing answers there (ECONNREFUSED)";
    if (code !== undefined) return code;
  }
  if (error instanceof ConnectError) return error.rawMessage;
  return error instanceof Error ? error.message : String(error);
}

/** fetch hides why it failed in the causes of its error. */
function networkCode(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code }: NodeJS.ErrnoException = cause;
    if (typeof code === "string" && /^[A-Z][A-Z_]+$/.test(code)) return code;
  }
  return undefined;
}
