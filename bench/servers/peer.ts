import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Child } from "./child.ts";
import type { Server } from "./server.ts";

/** The peers by name: a program of `bench/peers/`, its arguments, and what it speaks. */
const peers = {
  "grpc-js": { program: "grpc-js.ts", args: [], speaks: "grpc" },
  connect: { program: "connect.ts", args: [], speaks: "grpc" },
  fastify: { program: "fastify.ts", args: ["silent"], speaks: "http" },
  "fastify+log": { program: "fastify.ts", args: ["log"], speaks: "http" },
} as const;

export type PeerName = keyof typeof peers;

/** Starts a peer on `sealflow.db` of its folder, whose data is that of `owner`. */
export async function startPeer(name: PeerName, folder: string, owner: string): Promise<Server> {
  await mkdir(folder, { recursive: true });
  const { program, args, speaks } = peers[name];
  const path = fileURLToPath(new URL(`../peers/${program}`, import.meta.url));
  const databasePath = join(folder, "sealflow.db");
  const child = new Child([path, databasePath, owner, ...args], { folder, stdout: "file" });
  const [message] = await child.until(once(child.process, "message"));
  const port = Number(message);
  return {
    name,
    pid: child.pid,
    grpcPort: speaks === "grpc" ? port : undefined,
    httpPort: speaks === "http" ? port : undefined,
    databasePath,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
