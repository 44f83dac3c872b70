import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newDir, type Served, sealflow, serve } from "./cli/program.ts";

const data = "x".repeat(20_000);

/** Pushes until one is refused for the store; answers how many were acknowledged. */
async function pushUntilRefused(server: Served, token: string): Promise<number> {
  for (let n = 0; n < 2_000; n++) {
    const record = { type: "note", entityId: `n${n}`, version: "1", encryptedData: data };
    const { status, body } = await server.call(token, "/sync/push", record);
    if (status === 200) continue;
    expect([status, body.error.code]).toEqual([503, "UNAVAILABLE"]);
    return n;
  }
  throw new Error("the limit was never met");
}

async function countRecords(server: Served, token: string): Promise<number> {
  let count = 0;
  let since = 0;
  for (;;) {
    const { body } = await server.call(token, `/sync/pull?since=${since}`);
    count += body.records.length;
    since = body.cursor;
    if (!body.hasMore) return count;
  }
}

async function tokenIn(cwd: string, dataDir = "./data"): Promise<string> {
  const { stdout } = await sealflow(["token", "--sub", "me", "--data-dir", dataDir], { cwd });
  return stdout.trim();
}

const unlimited = ["--rate-limits", "sync=off"];

test("a write that fails for good ends the server, and loses nothing that was acknowledged", async () => {
  const cwd = newDir();
  // No file may grow above 4 MiB: as a broken disk, SQLite calls it an I/O error.
  const limited = ["bash", "-c", `trap "" XFSZ; ulimit -f 4096; exec "$@"`, "bash"];
  const server = await serve({ cwd, under: limited }, unlimited);
  const token = await tokenIn(cwd);
  const acknowledged = await pushUntilRefused(server, token);
  expect(acknowledged).toBeGreaterThan(20);
  expect(await server.exited).toBe(1);
  expect(server.stderr()).toContain("the store has failed");
  expect(server.stderr()).not.toContain("xxxx");

  const again = await serve({ cwd }, unlimited);
  expect(await countRecords(again, token)).toBeGreaterThanOrEqual(acknowledged);
  const next = { type: "note", entityId: "after", version: "1", encryptedData: data };
  expect((await again.call(token, "/sync/push", next)).status).toBe(200);
});

const canMount = mayMount();

test.skipIf(!canMount)("a full disk refuses writes, serves reads, and recovers", async () => {
  const cwd = newDir();
  mkdirSync(join(cwd, "tiny"));
  const mounted = ["unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=8m tmpfs tiny; exec "$@"`];
  const server = await serve({ cwd, under: [...mounted, "sh"] }, [
    ...["--data-dir", "tiny", ...unlimited],
  ]);
  // What is mounted is seen by the server alone.
  const inside = `/proc/${server.pid}/root${join(cwd, "tiny")}`;
  const token = await tokenIn(cwd, inside);
  const ballast = join(inside, "ballast");
  writeFileSync(ballast, Buffer.alloc(4 * 1024 * 1024));
  const acknowledged = await pushUntilRefused(server, token);
  expect(await countRecords(server, token)).toBe(acknowledged);

  rmSync(ballast);
  const next = { type: "note", entityId: "after", version: "1", encryptedData: data };
  await expect.poll(async () => (await server.call(token, "/sync/push", next)).status).toBe(200);
  expect(await countRecords(server, token)).toBe(acknowledged + 1);
  server.send("SIGTERM");
  expect(await server.exited).toBe(0);
});

function mayMount(): boolean {
  try {
    execFileSync("unshare", ["-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
