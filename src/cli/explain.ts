import { ServiceError } from "../domain/errors.ts";
import { CommandError, exitCodes, UsageError } from "./exit.ts";

/** What a failure is for people, in one line, and the exit code that it ends with. */
export interface Explanation {
  readonly line: string;
  readonly exitCode: number;
}

/** What the arguments call the fields of the service's own messages. */
const argumentNames: Readonly<Record<string, string>> = {
  agent_id: "--agent",
  jwt_secret: "SEALFLOW_JWT_SECRET",
  name: "NAME",
  scope: "--scope",
  sub: "--sub",
  ttl: "--ttl",
};

const systemFailures: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EADDRNOTAVAIL: "this machine does not have that address",
  EISDIR: "it is a directory",
  ENOENT: "no such file",
  ENOSPC: "the disk is full",
  ENOTDIR: "a part of the path is no directory",
  EPERM: "not permitted",
  EROFS: "the file system is read-only",
};

export function explain(error: unknown): Explanation {
  if (error instanceof UsageError) return { line: error.message, exitCode: exitCodes.usage };
  if (error instanceof CommandError) return { line: error.message, exitCode: error.exitCode };
  if (error instanceof ServiceError) return explainService(error);
  if (!(error instanceof Error)) return { line: String(error), exitCode: exitCodes.failed };
  return { line: systemLine(error) ?? firstLine(error.message), exitCode: exitCodes.failed };
}

function explainService(error: ServiceError): Explanation {
  const [broken] = error.facts.fields ?? [];
  if (broken === undefined) return { line: error.message, exitCode: exitCodes.failed };
  const name = argumentNames[broken.field] ?? broken.field;
  return { line: `${name} ${broken.message}`, exitCode: exitCodes.usage };
}

interface SystemError extends NodeJS.ErrnoException {
  readonly address?: string;
  readonly port?: number;
}

/** For an error of the operating system: what it was about, and what is wrong. */
function systemLine({ code, path, address, port }: SystemError): string | undefined {
  const failure = systemFailures[code ?? ""];
  const subject = path ?? (port === undefined ? address : `${address}, port ${port}`);
  return failure === undefined || subject === undefined ? undefined : `${subject}: ${failure}`;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
