import { copyFileSync, cpSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { createServer, connect as openSocket } from "node:net";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { here } from "./cli/here.ts";
import {
  newDir,
  type Served,
  sealflow,
  serve,
  startSealflow,
  withinASecond,
} from "./cli/program.ts";
import { handCaller } from "./doors/grpc-by-hand.ts";

// Every test starts processes; on a busy machine each takes seconds to load.
vi.setConfig({ testTimeout: 120_000 });

const freePorts = ["--http-port", "0", "--grpc-port", "0"];

describe("serve", () => {
  test("prints where it is, what is new and how to get a token", async () => {
    const how = { cwd: newDir(), env: { npm_lifecycle_event: "start" } };
    const server = await serve(how);
    const { version } = JSON.parse(await packageText());
    const block = (data: string, { url, grpcPort }: Served) =>
      [
        `Sealflow ${version}`,
        `  REST, Connect   ${url}/api/v1`,
        `  gRPC            127.0.0.1:${grpcPort}`,
        `  data            ${data}`,
        "  get a token     npm run -s sealflow -- token --sub me",
        "",
      ].join("\n");
    const made = "./data (new: signing key and server key made, mode 0600)";
    expect(server.stdout()).toBe(block(made, server));
    expect(statSync(join(how.cwd, "data", "server.key")).mode & 0o777).toBe(0o600);
    await stop(server);
    const again = await serve(how);
    expect(again.stdout()).toBe(block("./data", again));
  });

  test("says which key is new, and names another data directory in the hint", async () => {
    const cwd = newDir();
    mkdirSync(join(cwd, "my data"));
    await here(["token", "--sub", "me", "--data-dir", "my data"], { cwd });
    const server = await serve({ cwd }, ["--data-dir", "my data"]);
    expect(server.stdout()).toContain("./my data (new: server key made, mode 0600)\n");
    expect(server.stdout()).toMatch(/token --sub me --data-dir 'my data'\n/);
  });

  test.each([
    ["--grpc-lane on", ["--grpc-lane", "on"], {}],
    ["--grpc-lane off", ["--grpc-lane", "off"], {}],
    ["SEALFLOW_GRPC_LANE=off", [], { SEALFLOW_GRPC_LANE: "off" }],
  ])("with %s serves gRPC so", async (name, args, env) => {
    const { grpcPort } = await serve({ cwd: newDir(), env }, args);
    const stranger = handCaller({ grpcUrl: `http://127.0.0.1:${grpcPort}` }, "");
    const { code, isTrailersOnly } = await stranger.send({ body: Buffer.alloc(5) });
    // The lane puts what it refuses into one frame, the adapter into two.
    expect([code, isTrailersOnly]).toEqual(["Unauthenticated", name.endsWith("on")]);
  });

  test("a second one on the same data is refused with pid and ports", async () => {
    const cwd = newDir();
    const server = await serve({ cwd });
    const second = await sealflow(["serve", ...freePorts], { cwd });
    expect(second).toMatchObject({ code: 1, stdout: "" });
    expect(second.stderr).toMatch(/^sealflow serve: [^\n]*\n$/);
    expect(second.stderr).toContain(`pid ${server.pid}, ${server.url}, gRPC 127.0.0.1:`);
    expect(await server.call(await token(cwd), "/workflows")).toMatchObject({ status: 200 });
  });

  test.each(["http-port", "grpc-port"])(
    "a --%s in use is named, with who uses it",
    async (flag) => {
      await using blocker = await listenSomewhere();
      const args = ["serve", ...freePorts, `--${flag}`, String(blocker.port)];
      const { code, stderr } = await sealflow(args, { cwd: newDir() });
      expect(code).toBe(1);
      expect(stderr).toMatch(/^[^\n]*\n$/);
      expect(stderr).toContain(`port ${blocker.port} `);
      expect(stderr).toContain(`--${flag}`);
      if (process.platform === "linux") expect(stderr).toContain(`(pid ${process.pid})`);
    },
  );

  test.each(["SIGTERM", "SIGINT"] as const)("%s ends it with 0, quickly", async (signal) => {
    const cwd = newDir();
    const server = await serve({ cwd });
    expect(existsSync(join(cwd, "data", "sealflow.db.holder"))).toBe(true);
    const startedAtMs = performance.now();
    server.send(signal);
    expect(await server.exited).toBe(0);
    expect(performance.now() - startedAtMs).toBeLessThan(3000);
    expect(existsSync(join(cwd, "data", "sealflow.db.holder"))).toBe(false);
    expect(server.stderr()).toBe("");
  });

  test("a second signal ends it at once with 1, while a request is still on its way", async () => {
    const cwd = newDir();
    const server = await serve({ cwd });
    const socket = openSocket(server.httpPort, "127.0.0.1");
    const headers = [
      "POST /api/v1/sync/push HTTP/1.1",
      "host: x",
      `authorization: Bearer ${await token(cwd)}`,
      "x-agent-id: laptop",
      "content-type: application/json",
      "content-length: 100",
    ];
    socket.on("error", () => {});
    socket.write(`${headers.join("\r\n")}\r\n\r\n{`);
    await new Promise((resolve) => setTimeout(resolve, 200));
    server.send("SIGTERM");
    await server.until(/Stopping/);
    server.send("SIGTERM");
    expect(await server.exited).toBe(1);
    socket.destroy();
  });

  test("warns loudly of another host without TLS, unless that is meant", async () => {
    const all = await serve({ cwd: newDir() }, ["--host", "0.0.0.0"]);
    expect(all.stderr()).toContain("WARNING");
    const env = { SEALFLOW_HOST: "0.0.0.0", SEALFLOW_PLAINTEXT: "yes" };
    const byVariable = await serve({ cwd: newDir(), env });
    expect(byVariable.stderr()).toBe("");
  });

  test("limits are what it is told", async () => {
    const cwd = newDir();
    const server = await serve({ cwd }, ["--rate-limits", "workflows=1,sync=off"]);
    const mine = await token(cwd);
    expect(await server.call(mine, "/workflows")).toMatchObject({ status: 200 });
    expect(await server.call(mine, "/workflows")).toMatchObject({
      status: 429,
      body: { error: { code: "RATE_LIMITED" } },
    });
  });

  test("refuses a database whose key is another", async () => {
    const cwd = newDir();
    await stop(await serve({ cwd }));
    const env = { SEALFLOW_MASTER_KEY: Buffer.alloc(32, 7).toString("base64url") };
    const { code, stderr } = await sealflow(["serve", ...freePorts], { cwd, env });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^[^\n]*SEALFLOW_MASTER_KEY[^\n]*\n$/);
    expect(stderr).not.toContain(env.SEALFLOW_MASTER_KEY);
  });
});

describe("beside a running server", () => {
  test("a client gets tokens within a second, and loses them within a second", async () => {
    const cwd = newDir();
    const server = await serve({ cwd }, ["--rate-limits", "auth=1000"]);
    const added = await here(["client", "add", "bot", "--sub", "me", "--json"], { cwd });
    expect(added.code).toBe(0);
    const credentials = JSON.parse(added.stdout);
    let theirs = "";
    const getsToken = async () => {
      theirs = (await askForToken(server, credentials)) ?? "";
      return theirs !== "";
    };
    expect(await withinASecond(getsToken)).toBe(true);
    expect(await server.call(theirs, "/workflows")).toMatchObject({ status: 200 });

    const again = await here(["client", "add", "bot", "--sub", "me"], { cwd });
    expect(again).toMatchObject({ code: 1, stdout: "" });

    expect((await here(["client", "list"], { cwd })).stdout).toContain(credentials.client_id);
    expect((await here(["client", "remove", "bot"], { cwd })).code).toBe(0);
    const isRefused = async () => (await server.call(theirs, "/workflows")).status === 401;
    expect(await withinASecond(isRefused)).toBe(true);
    expect((await here(["client", "list", "--json"], { cwd })).stdout).toBe("[]\n");

    const renewed = await here(["client", "add", "bot", "--sub", "me"], { cwd });
    expect(renewed.stdout).toMatch(/^client_id=cl_[\w-]+\nclient_secret=sfs_[\w-]+\n$/);
    expect(renewed.stdout).not.toContain(credentials.client_id);
  });

  test("keys rotate: old tokens live on, until --drop-old", async () => {
    const cwd = newDir();
    const first = await token(cwd);
    const server = await serve({ cwd });
    expect((await here(["keys", "rotate"], { cwd })).code).toBe(0);
    const second = await token(cwd);
    const isTaken = (each: string) => async () =>
      (await server.call(each, "/workflows")).status === 200;
    expect(await withinASecond(isTaken(second))).toBe(true);
    expect(await isTaken(first)()).toBe(true);
    expect((await here(["keys", "rotate", "--drop-old"], { cwd })).code).toBe(0);
    expect(await withinASecond(async () => !(await isTaken(first)()))).toBe(true);
    expect(await withinASecond(async () => !(await isTaken(second)()))).toBe(true);
    expect(await withinASecond(isTaken(await token(cwd)))).toBe(true);
  });

  test("a backup is a database of its own, with another epoch", async () => {
    const cwd = newDir();
    const server = await serve({ cwd });
    const mine = await token(cwd);
    const draft = { name: "Count", encryptedData: "b3BhcXVl", encryptionKey: "k" };
    const { body: workflow } = await server.call(mine, "/workflows", draft);
    const epoch = (await server.call(mine, "/sync/pull")).body.epoch;

    const backedUp = await here(["backup", "copy.db"], { cwd });
    expect(backedUp).toMatchObject({ code: 0, stderr: "" });
    expect(backedUp.stdout).toContain("data/server.key");
    expect(statSync(join(cwd, "copy.db")).mode & 0o777).toBe(0o600);
    expect(await here(["backup", "copy.db"], { cwd })).toMatchObject({ code: 1, stdout: "" });

    await stop(server);
    // A server that was killed leaves its log behind.
    writeFileSync(join(cwd, "data", "sealflow.db-wal"), "of what was there before");
    copyFileSync(join(cwd, "copy.db"), join(cwd, "data", "sealflow.db"));
    const staleWal = await sealflow(["serve", ...freePorts], { cwd });
    expect(staleWal).toMatchObject({ code: 1, stdout: "" });
    expect(staleWal.stderr).toMatch(/^sealflow serve: [^\n]*sealflow\.db-wal[^\n]*\n$/);

    const restored = newDir();
    mkdirSync(join(restored, "data"));
    copyFileSync(join(cwd, "copy.db"), join(restored, "data", "sealflow.db"));
    const noKey = await sealflow(["serve", ...freePorts], { cwd: restored });
    expect(noKey).toMatchObject({ code: 1, stdout: "" });
    cpSync(join(cwd, "data", "server.key"), join(restored, "data", "server.key"));
    cpSync(join(cwd, "data", "keys"), join(restored, "data", "keys"), { recursive: true });
    const other = await serve({ cwd: restored });
    expect(await other.call(mine, `/workflows/${workflow.id}`)).toMatchObject({
      status: 200,
      body: { name: "Count" },
    });
    const pulled = await other.call(mine, "/sync/pull");
    expect(pulled.body.epoch).toMatch(/./);
    expect(pulled.body.epoch).not.toBe(epoch);
  });

  test("migrate finds a database up to date, and makes an absent one", async () => {
    const cwd = newDir();
    expect((await here(["migrate"], { cwd })).stdout).toContain("was brought up to date");
    const server = await serve({ cwd });
    const { code, stdout } = await here(["migrate"], { cwd });
    expect(code).toBe(0);
    expect(stdout).toContain("is up to date");
    await stop(server);
  });
});

test("a server that another process started on a used port leaves the data free", async () => {
  const cwd = newDir();
  await using blocker = await listenSomewhere();
  const refused = startSealflow(["serve", "--http-port", String(blocker.port)], { cwd });
  expect(await refused.exited).toBe(1);
  await serve({ cwd });
});

async function token(cwd: string): Promise<string> {
  return (await here(["token", "--sub", "me"], { cwd })).stdout.trim();
}

async function stop(server: Served): Promise<void> {
  server.send("SIGTERM");
  expect(await server.exited).toBe(0);
}

async function askForToken(
  { url }: Served,
  credentials: { readonly client_id: string; readonly client_secret: string },
): Promise<string | undefined> {
  const body = new URLSearchParams({ grant_type: "client_credentials", ...credentials });
  const response = await fetch(`${url}/api/v1/auth/token`, { method: "POST", body });
  return response.ok ? (await response.json()).access_token : undefined;
}

async function listenSomewhere(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

async function packageText(): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  return readFile(new URL("../package.json", import.meta.url), "utf8");
}
