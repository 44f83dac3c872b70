import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Bench } from "../scenario.ts";
import { Child } from "./child.ts";
import type { Server } from "./server.ts";

const build = fileURLToPath(new URL("../../tools/build.ts", import.meta.url));
const groups = ["auth", "sync", "workflows", "agents", "executions", "tasks"];

/** Makes the package that is published; its command. `folder` must lie in the checkout, whose packages it uses. */
export async function buildSealflow(folder: string): Promise<string> {
  await promisify(execFile)(process.execPath, [build, folder]);
  return join(folder, "bin/main.js");
}

/**
 * Sealflow as it is shipped: authentication, validation, error mapping, limits, log and durable
 * writes are what they are by default. Only the rate limits are off.
 */
export async function startSealflow(
  { command, settings: { profiles } }: Pick<Bench, "command" | "settings">,
  folder: string,
): Promise<Server> {
  await mkdir(folder, { recursive: true });
  const child = new Child(
    [
      ...(profiles === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profiles}`]),
      ...[command, "serve", "--http-port", "0", "--grpc-port", "0"],
      ...["--data-dir", folder, "--rate-limits", groups.map((it) => `${it}=off`).join(",")],
    ],
    { folder, stdout: "pipe" },
  );
  const [httpPort, grpcPort] = await child.until(readPorts(child));
  return {
    name: "sealflow",
    pid: child.pid,
    httpPort,
    grpcPort,
    databasePath: join(folder, "sealflow.db"),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** Never resolves when the process ends before it has said both. */
async function readPorts({ process }: Child): Promise<readonly [http: number, grpc: number]> {
  const { promise, resolve } = Promise.withResolvers<readonly [number, number]>();
  if (process.stdout === null) throw new Error("no pipe");
  let http = 0;
  createInterface({ input: process.stdout }).on("line", (line) => {
    const [, httpPort] = /http:\/\/[\d.]+:(\d+)\/api/.exec(line) ?? [];
    const [, grpcPort] = /gRPC +[\d.]+:(\d+)/.exec(line) ?? [];
    if (httpPort !== undefined) http = Number(httpPort);
    if (grpcPort !== undefined) resolve([http, Number(grpcPort)]);
  });
  return promise;
}
