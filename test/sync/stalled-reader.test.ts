import { connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { newDir, type Served, sealflow, serve } from "../cli/program.ts";
import { restCaller, rpcCaller } from "../doors/callers.ts";
import { Follower } from "./follower.ts";

const tellMemory = fileURLToPath(new URL("tell-memory.ts", import.meta.url));
const MiB = 1024 * 1024;
const entities = 50;
const data = "x".repeat(20_000);

async function startServer(): Promise<{ readonly server: Served; readonly token: string }> {
  const cwd = newDir();
  const under = ["env", `NODE_OPTIONS=--import ${tellMemory}`];
  const server = await serve({ cwd, under }, ["--rate-limits", "sync=off"]);
  const { stdout } = await sealflow(["token", "--sub", "me"], { cwd });
  return { server, token: stdout.trim() };
}

/** What the server holds after a garbage collection, in bytes. */
async function memoryOf(server: Served): Promise<number> {
  const said = () => server.stderr().match(/memory in use: \d+/g) ?? [];
  const before = said().length;
  server.send("SIGUSR2");
  await expect.poll(() => said().length, { timeout: 10_000 }).toBe(before + 1);
  return Number(said().at(-1)?.replace(/\D/g, ""));
}

/** Subscribers that never read: over gRPC, and as an event stream. */
const readers = {
  grpc: ({ grpcPort }: Served, token: string) => {
    const session = connectHttp2(`http://127.0.0.1:${grpcPort}`);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ":method": "POST",
      ":path": "/sealflow.v1.SyncService/Subscribe",
      "content-type": "application/grpc",
      te: "trailers",
      authorization: `Bearer ${token}`,
      "x-agent-id": "stuck",
    });
    stream.on("error", () => {});
    stream.end(Buffer.alloc(5));
    return new Promise<void>((resolve) => stream.once("response", () => resolve()));
  },
  events: ({ httpPort }: Served, token: string) => {
    const socket = connectTcp(httpPort, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    const headers = `host: x\r\nauthorization: Bearer ${token}\r\nx-agent-id: stuck\r\n`;
    socket.write(`GET /api/v1/sync/subscribe HTTP/1.1\r\n${headers}\r\n`);
    return new Promise<void>((resolve) => socket.once("readable", () => resolve()));
  },
};

test.each(Object.entries(readers))(
  "a subscriber that never reads costs no memory, and holds up nobody: %s",
  async (_, subscribe) => {
    const { server, token } = await startServer();
    const address = { httpUrl: server.url, grpcUrl: `http://127.0.0.1:${server.grpcPort}` };
    const me = restCaller(address, { token, agentId: "laptop" });
    let version = 0;
    const pushAll = async () => {
      version += 1;
      const records = Array.from({ length: entities }, (_, n) => ({
        ...{ type: "note", entityId: `n${n}`, encryptedData: data, version: String(version) },
      }));
      await me.ok("POST", "/sync/push", { records });
    };
    for (let i = 0; i < 10; i++) await pushAll();

    const before = await memoryOf(server);
    await subscribe(server, token);
    const other = new Follower();
    const rpc = rpcCaller(address, { token, agentId: "phone" });
    const rounds = 40;
    const last = String(version + rounds);
    const isLast = ({ version: of }: { version: string }) => of === last;
    const following = other.read(rpc, () => {
      const told = [...other.state.values()];
      return told.length === entities && told.every(isLast);
    });
    // 40 MB go by.
    for (let i = 0; i < rounds; i++) await pushAll();
    await following;
    expect(other.wrongs).toEqual([]);
    const grown = (await memoryOf(server)) - before;
    expect(grown / MiB).toBeLessThan(5);
  },
  60_000,
);
