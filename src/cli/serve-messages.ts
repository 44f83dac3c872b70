import { isAbsolute, join, relative } from "node:path";
import type { ServerConfig } from "../config.ts";
import type { RunningServer } from "../server.ts";
import { dataDirDefault } from "./data-options.ts";
import { programName, version } from "./package.ts";

/** What `serve` prints once it serves. */
export function startText(
  { dataDir, databasePath }: ServerConfig,
  { httpUrl, grpcAddress, madeKeys }: RunningServer,
): string {
  const keys = madeKeys.length === 0 ? "" : ` (new: ${madeKeys.join(" and ")} made, mode 0600)`;
  const isElsewhere = databasePath !== join(dataDir, "sealflow.db");
  const rows = [
    ["REST, Connect", `${httpUrl}/api/v1`],
    ["gRPC", grpcAddress],
    ["data", `${pathText(dataDir)}${keys}`],
    ...(isElsewhere ? [["database", pathText(databasePath)]] : []),
    ["get a token", `${programName()} token --sub me${dataDirArgument(dataDir)}`],
  ];
  const lines = rows.map(([name = "", value = ""]) => `  ${name.padEnd(16)}${value}\n`);
  return `Sealflow ${version()}\n${lines.join("")}`;
}

/** Whether only this machine reaches it. */
export function isLocal(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

export function plaintextWarning(host: string): string {
  return [
    "WARNING: this server has no TLS, and other machines can reach it.",
    `WARNING: whoever is on the way to ${host} can read tokens and change what is sent.`,
    "WARNING: put a proxy with TLS before it; --plaintext says that this is so, and ends this.",
    "",
  ].join("\n");
}

function dataDirArgument(dataDir: string): string {
  return dataDir === dataDirDefault ? "" : ` --data-dir ${quoted(dataDir)}`;
}

/** A relative path is shown as one, e.g. `./data`. */
function pathText(path: string): string {
  if (isAbsolute(path) || path.startsWith(".")) return path;
  return `./${relative(".", path)}`;
}

/** For a shell, when it needs it. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
