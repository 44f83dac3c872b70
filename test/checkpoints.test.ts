import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import type { Store } from "../src/storage/port.ts";
import { Checkpoints } from "../src/storage/sqlite/file/checkpoints.ts";
import { openSqliteStore } from "../src/storage/sqlite/open.ts";
import { createFakeClock, makeFolder, testKey } from "./suites/open-store.ts";
import { pushEach, recordDraft } from "./suites/record-drafts.ts";

const mebibyte = 2 ** 20;

test("a thread copies the log into the file, which no commit has done yet", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  await using store = await openAt(path);
  const before = store.clients.foreignChanges();
  for (let i = 0; i < 10; i++) await pushMany(store, 100, 50_000);
  await expect.poll(() => sizeOf(path), { timeout: 5_000 }).toBeGreaterThan(40 * mebibyte);
  // What the thread does is not what another program does.
  expect(store.clients.foreignChanges()).toBe(before);
});

test("the log begins anew while writes go on", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  await using store = await openAt(path);
  let longest = 0;
  for (let i = 0; i < 80; i++) {
    await pushMany(store, 100, 40_000);
    await pause(10);
    longest = Math.max(longest, await sizeOf(`${path}-wal`));
  }
  expect(await sizeOf(path)).toBeGreaterThan(200 * mebibyte);
  // Commits copy it at 156 MiB.
  expect(longest).toBeLessThan(120 * mebibyte);
});

test("a few writes are copied at leisure", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  await using store = await openAt(path);
  const before = await sizeOf(path);
  await pushMany(store, 50, 4_000);
  await pause(300);
  expect(await sizeOf(path)).toBe(before);
  await expect.poll(() => sizeOf(path), { timeout: 5_000 }).toBeGreaterThan(before);
});

test("its end leaves nothing in the log, however often it ends", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  const store = await openAt(path);
  for (let i = 0; i < 10; i++) await pushMany(store, 100, 4_000);
  // The thread is at work.
  await pause(60);
  await store[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  await expect(sizeOf(`${path}-wal`)).rejects.toMatchObject({ code: "ENOENT" });
});

test.each([
  ["cannot be started", "http://no.module"],
  ["ends by itself", "data:text/javascript,process.exit(1)"],
])("without a thread, for it %s, a commit copies the log", async (_, module) => {
  await using folder = await makeFolder();
  const path = join(folder.path, "file.db");
  const connection = new Database(path);
  connection.pragma("journal_mode = WAL");
  connection.pragma("wal_autocheckpoint = 40000");
  connection.exec("CREATE TABLE t (text)");
  await using checkpoints = new Checkpoints(connection, new URL(module));
  const insert = connection.prepare("INSERT INTO t VALUES (?)");
  insert.run("A".repeat(4_000));
  checkpoints.committed();
  const limit = () => connection.pragma("wal_autocheckpoint", { simple: true });
  await expect.poll(limit, { timeout: 5_000 }).toBe(4_000);
});

function openAt(path: string): Promise<Store> {
  return openSqliteStore({ path, masterKey: testKey(1), clock: createFakeClock() });
}

let written = 0;

async function pushMany(store: Store, count: number, length: number): Promise<void> {
  const encryptedData = "A".repeat(length);
  const drafts = Array.from({ length: count }, () =>
    recordDraft({ entityId: `n${++written}`, encryptedData }),
  );
  await pushEach(store, ...drafts);
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path)).size;
}
