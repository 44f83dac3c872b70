import { once } from "node:events";
import { chmod, copyFile, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { loadServerKey, ServerKeyError } from "../src/storage/server-key.ts";
import { backUpSqliteFile } from "../src/storage/sqlite/file/backup.ts";
import {
  BackupInUseError,
  markBackup,
  readKeyCheck,
  StaleWalError,
  WrongServerKeyError,
} from "../src/storage/sqlite/file/identity.ts";
import { holderPath, StoreHeldError } from "../src/storage/sqlite/file/lock.ts";
import { migrationTimes, NewerStoreError } from "../src/storage/sqlite/migrate.ts";
import { migrateSqliteFile, openSqliteStore } from "../src/storage/sqlite/open.ts";
import { startForTest } from "./cli/processes.ts";
import { makeWorkflow } from "./suites/drafts.ts";
import { createFakeClock, makeFolder, testKey } from "./suites/open-store.ts";

const clock = createFakeClock();

function openAt(path: string, options: { exclusive?: boolean; key?: Uint8Array } = {}) {
  const { exclusive = true, key = testKey(1) } = options;
  return openSqliteStore({ path, masterKey: key, clock, exclusive });
}

describe("one server a file", () => {
  test("a second server is refused, and told who holds it", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    await using first = await openAt(path);
    await writeFile(holderPath(path), "process 4711, http://127.0.0.1:8080\n");
    const refused = await openAt(path).catch((cause: unknown) => cause);
    expect(refused).toBeInstanceOf(StoreHeldError);
    expect(refused).toMatchObject({ holder: "process 4711, http://127.0.0.1:8080" });
    await makeWorkflow(first, "alice");
  });

  test("the refusal holds while the first server lives, and no longer", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    const first = await openAt(path);
    await expect(openAt(path)).rejects.toThrow(StoreHeldError);
    await expect(openAt(path)).rejects.toThrow(StoreHeldError);
    await first[Symbol.asyncDispose]();
    await using second = await openAt(path);
    expect(second.isWritable()).toBe(true);
  });

  test("another process is refused, and may begin at once after a kill -9", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    const script = `
      const { openSqliteStore } = await import(${JSON.stringify(
        new URL("../src/storage/sqlite/open.ts", import.meta.url).href,
      )});
      const clock = { wallUs: () => 1, steadyUs: () => 1 };
      await openSqliteStore({ path: ${JSON.stringify(path)}, masterKey: new Uint8Array(32).fill(1), clock });
      process.stdout.write("open");
      setInterval(() => {}, 1000);`;
    const other = startForTest(process.execPath, ["--input-type=module", "-e", script]);
    await once(other.stdout, "data");
    await expect(openAt(path)).rejects.toThrow(StoreHeldError);
    other.kill("SIGKILL");
    await once(other, "exit");
    await using store = await openAt(path);
    expect(store.isWritable()).toBe(true);
  });

  test("a command works beside a running server, and the server sees that it did", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    await using server = await openAt(path);
    const before = server.clients.foreignChanges();
    await makeWorkflow(server, "alice");
    expect(server.clients.foreignChanges()).toBe(before);
    const command = await openAt(path, { exclusive: false });
    await command.clients.addClient({
      id: "c1",
      name: "laptop",
      owner: "alice",
      agentId: "",
      scope: "",
      createdUs: 1,
      secretHash: "hash",
    });
    expect(command.epoch).toBe(server.epoch);
    await command[Symbol.asyncDispose]();
    expect(server.clients.foreignChanges()).not.toBe(before);
    expect(await server.clients.listClients()).toHaveLength(1);
    await expect(openAt(path)).rejects.toThrow(StoreHeldError);
  });

  test("a command begins a database that no server has opened", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "data", "sealflow.db");
    const command = await openAt(path, { exclusive: false });
    const { epoch } = command;
    await command[Symbol.asyncDispose]();
    await using server = await openAt(path);
    expect(server.epoch).toBe(epoch);
  });
});

describe("the file", () => {
  test("data, epoch and fingerprints survive reopening", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    const first = await openAt(path);
    const made = await makeWorkflow(first, "alice");
    const { epoch } = first;
    const fingerprint = first.fingerprint("content");
    await first[Symbol.asyncDispose]();
    await using second = await openAt(path);
    expect(await second.workflows.getWorkflow("alice", "w1")).toStrictEqual(made);
    expect(second.epoch).toBe(epoch);
    expect(second.fingerprint("content")).toBe(fingerprint);
  });

  test("it and its directory are for their user alone, and hold no key in the clear", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "data", "sealflow.db");
    const store = await openAt(path);
    await makeWorkflow(store, "alice", { encryptionKey: "a key nobody may read" });
    await store[Symbol.asyncDispose]();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder.path, "data"))).mode & 0o777).toBe(0o700);
    expect((await readFile(path)).includes("a key nobody may read")).toBe(false);
    expect((await readFile(path)).includes("nightly report")).toBe(true);
  });

  test("a marked copy draws a new epoch at its first opening, and once", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    const copy = join(folder.path, "copy.db");
    const original = await openAt(path);
    await original[Symbol.asyncDispose]();
    await copyFile(path, copy);
    markBackup(copy);
    const first = await openAt(copy, { exclusive: false });
    expect(first.epoch).not.toBe(original.epoch);
    await first[Symbol.asyncDispose]();
    await using again = await openAt(copy);
    expect(again.epoch).toBe(first.epoch);
  });
});

describe("migrations", () => {
  test("their times ascend: an older one would be skipped silently", () => {
    const times = migrationTimes();
    expect(times.length).toBeGreaterThan(0);
    expect(times).toStrictEqual([...new Set(times)].sort((a, b) => a - b));
  });

  test("migrateSqliteFile brings a file up to date, and changes nothing the second time", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    expect(migrateSqliteFile(path)).toStrictEqual({ changed: true });
    expect(migrateSqliteFile(path)).toStrictEqual({ changed: false });
    await using store = await openAt(path);
    expect(store.isWritable()).toBe(true);
  });

  test("nobody migrates a file that a server holds", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    await using _server = await openAt(path);
    forgetMigrations(path);
    expect(() => migrateSqliteFile(path)).toThrow(StoreHeldError);
    await expect(openAt(path, { exclusive: false })).rejects.toThrow(StoreHeldError);
  });

  test("a file of a newer version is refused", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    migrateSqliteFile(path);
    const connection = new Database(path);
    connection
      .prepare("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('newer', ?)")
      .run(Math.max(...migrationTimes()) + 1);
    connection.close();
    await expect(openAt(path)).rejects.toThrow(NewerStoreError);
  });
});

describe("the server's key", () => {
  test("another key is refused, and the right one still opens the file", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    const first = await openAt(path);
    await first[Symbol.asyncDispose]();
    await expect(openAt(path, { key: testKey(2) })).rejects.toThrow(WrongServerKeyError);
    await expect(openAt(path, { key: testKey(2), exclusive: false })).rejects.toThrow(
      WrongServerKeyError,
    );
    await using second = await openAt(path);
    expect(second.isWritable()).toBe(true);
  });

  test("a database tells whether it was made with a key", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "sealflow.db");
    expect(readKeyCheck(path)).toBe(null);
    migrateSqliteFile(path);
    expect(readKeyCheck(path)).toBe(null);
    await using _store = await openAt(path);
    expect(readKeyCheck(path)).toMatch(/^[A-Za-z0-9_-]{43}$/);
    await expect(openAt(path)).rejects.toThrow(StoreHeldError);
  });

  test("it is made once, for its user alone", async () => {
    await using folder = await makeFolder();
    const dataDir = join(folder.path, "data");
    const made = loadServerKey({ dataDir, hasKeyCheck: false });
    expect(made.created).toBe(true);
    expect(made.key).toHaveLength(32);
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
    expect((await stat(join(dataDir, "server.key"))).mode & 0o777).toBe(0o600);
    for (const hasKeyCheck of [false, true]) {
      const read = loadServerKey({ dataDir, hasKeyCheck });
      expect(read).toStrictEqual({ key: made.key, created: false });
    }
  });

  test("an empty file is told from a missing one, and left as it is", async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "server.key");
    await writeFile(path, "", { mode: 0o600 });
    const source = { dataDir: folder.path, hasKeyCheck: false };
    expect(() => loadServerKey(source)).toThrow(/43 characters/);
    expect(await readdir(folder.path)).toStrictEqual(["server.key"]);
  });

  test("several processes that begin at once use one", async () => {
    await using folder = await makeFolder();
    const script = `
      const { loadServerKey } = await import(${JSON.stringify(
        new URL("../src/storage/server-key.ts", import.meta.url).href,
      )});
      const source = { dataDir: ${JSON.stringify(join(folder.path, "data"))}, hasKeyCheck: false };
      const { key, created } = loadServerKey(source);
      process.stdout.write(JSON.stringify([Buffer.from(key).toString("hex"), created]));`;
    const answers = await Promise.all(Array.from({ length: 6 }, () => outputOf(script)));
    expect(new Set(answers.map(([key]) => key)).size).toBe(1);
    expect(answers.filter(([, created]) => created)).toHaveLength(1);
    expect(await readdir(join(folder.path, "data"))).toStrictEqual(["server.key"]);
  });

  test("none is made for a database that has a check value", async () => {
    await using folder = await makeFolder();
    const source = { dataDir: folder.path, hasKeyCheck: true };
    expect(() => loadServerKey(source)).toThrow(ServerKeyError);
    await expect(stat(join(folder.path, "server.key"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("the setting counts before the file, and no file is made", async () => {
    await using folder = await makeFolder();
    const fromSetting = Buffer.from(testKey(7)).toString("base64url");
    const read = loadServerKey({ dataDir: folder.path, fromSetting, hasKeyCheck: false });
    expect(Buffer.from(read.key)).toStrictEqual(Buffer.from(testKey(7)));
    expect(read.created).toBe(false);
    await expect(stat(join(folder.path, "server.key"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  test.each(["short", `${"A".repeat(42)}!`, "A".repeat(44)])(
    "a setting that is no key is refused: %s",
    async (fromSetting) => {
      await using folder = await makeFolder();
      const source = { dataDir: folder.path, fromSetting, hasKeyCheck: false };
      expect(() => loadServerKey(source)).toThrow(ServerKeyError);
    },
  );

  test("a key file that others can read is refused, and so is a damaged one", async () => {
    await using folder = await makeFolder();
    const source = { dataDir: folder.path, hasKeyCheck: false };
    const path = join(folder.path, "server.key");
    loadServerKey(source);
    await chmod(path, 0o640);
    expect(() => loadServerKey(source)).toThrow(ServerKeyError);
    await chmod(path, 0o600);
    expect(loadServerKey(source).created).toBe(false);
    await writeFile(path, "");
    expect(() => loadServerKey(source)).toThrow(ServerKeyError);
  });
});

describe("a backup", () => {
  test("beside the log of what was there before it is refused, and opens without it", async () => {
    await using folder = await makeFolder();
    const at = (name: string) => join(folder.path, name);
    const before = await openAt(at("live.db"));
    await makeWorkflow(before, "alice");
    backUpSqliteFile(at("live.db"), at("backup.db"));
    await makeWorkflow(before, "alice", { id: "w2" });
    // As a crash leaves it: the log is still there.
    await copyFile(at("live.db-wal"), at("restored.db-wal"));
    const { epoch } = before;
    await before[Symbol.asyncDispose]();

    await copyFile(at("backup.db"), at("restored.db"));
    await expect(openAt(at("restored.db"))).rejects.toBeInstanceOf(StaleWalError);
    expect(() => readKeyCheck(at("restored.db"))).toThrow(StaleWalError);
    expect(() => migrateSqliteFile(at("restored.db"))).toThrow(StaleWalError);
    await rm(at("restored.db-wal"));
    const restored = await openAt(at("restored.db"));
    expect(restored.epoch).not.toBe(epoch);
    expect((await restored.workflows.listWorkflows("alice", { limit: 9 })).total).toBe(1);

    // A crash of the restored one is nothing to refuse: its log is its own.
    await makeWorkflow(restored, "alice", { id: "w3" });
    for (const end of ["", "-wal"]) {
      await copyFile(at(`restored.db${end}`), at(`crashed.db${end}`));
    }
    await restored[Symbol.asyncDispose]();
    const again = await openAt(at("crashed.db"));
    expect(again.epoch).toBe(restored.epoch);
    expect((await again.workflows.listWorkflows("alice", { limit: 9 })).total).toBe(2);
    await again[Symbol.asyncDispose]();
  });
});

test("a backup that another process reads is not begun on", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  const original = await openAt(path);
  await original[Symbol.asyncDispose]();
  markBackup(path);
  const reader = new Database(path);
  reader.exec("BEGIN; SELECT * FROM meta");
  await expect(openAt(path)).rejects.toThrow(BackupInUseError);
  reader.close();
  await using store = await openAt(path);
  expect(store.epoch).not.toBe(original.epoch);
});

test("what a deleted workflow held is found in no file", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  const store = await openAt(path);
  const encryptedData = "CANARY".repeat(3000);
  const { id } = await makeWorkflow(store, "alice", { encryptedData });
  await store[Symbol.asyncDispose]();
  expect((await readFile(path)).includes("CANARY")).toBe(true);
  const again = await openAt(path);
  await again.workflows.deleteWorkflow("alice", id);
  await again[Symbol.asyncDispose]();
  expect((await readFile(path)).includes("CANARY")).toBe(false);
  await expect(stat(`${path}-wal`)).rejects.toMatchObject({ code: "ENOENT" });
});

test("its lock is for its user alone, also where it was not", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "sealflow.db");
  await writeFile(`${path}.lock`, "", { mode: 0o644 });
  const store = await openAt(path);
  expect((await stat(`${path}.lock`)).mode & 0o777).toBe(0o600);
  await store[Symbol.asyncDispose]();
});

async function outputOf(script: string): Promise<readonly unknown[]> {
  const child = startForTest(process.execPath, ["--input-type=module", "-e", script]);
  return JSON.parse(await text(child.stdout));
}

/** As a file looks to a newer version of the program. */
function forgetMigrations(path: string): void {
  const connection = new Database(path);
  connection.exec("DELETE FROM __drizzle_migrations");
  connection.close();
}
