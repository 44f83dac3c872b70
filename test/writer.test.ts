import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, expect, test } from "vitest";
import {
  makeDatabaseFile,
  openConnection,
  stopBlocking,
} from "../src/storage/sqlite/file/connection.ts";
import { createWriter, type Writer } from "../src/storage/sqlite/writer.ts";
import { makeFolder } from "./suites/open-store.ts";
import { refusalOf } from "./suites/refusal.ts";

interface OpenedWriter {
  readonly writer: Writer;
  readonly connection: Database.Database;
  /** Another process' view of the file. */
  readonly foreign: Database.Database;
  add(n: number): void;
  /** What is committed, as others see it. */
  stored(): unknown[];
}

const toClose: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of toClose.splice(0)) await close();
});

async function openWriter(): Promise<OpenedWriter> {
  const folder = await makeFolder();
  const path = join(folder.path, "writer.db");
  makeDatabaseFile(path);
  const connection = openConnection(path);
  connection.exec("CREATE TABLE number (n INTEGER PRIMARY KEY)");
  stopBlocking(connection);
  const foreign = new Database(path, { timeout: 0 });
  const insert = connection.prepare("INSERT INTO number (n) VALUES (?)");
  toClose.push(async () => {
    foreign.close();
    connection.close();
    await folder[Symbol.asyncDispose]();
  });
  return {
    writer: createWriter(connection),
    connection,
    foreign,
    add: (n) => {
      insert.run(n);
    },
    stored: () => foreign.prepare("SELECT n FROM number ORDER BY n").pluck().all(),
  };
}

test("a failing write fails alone, with its partial work undone", async () => {
  const { writer, add, stored } = await openWriter();
  const failure = new Error("no");
  const outcomes = await Promise.allSettled([
    writer.write(() => add(1)),
    writer.write(() => {
      add(2);
      throw failure;
    }),
    writer.write(() => {
      add(3);
      add(1);
    }),
    writer.write(() => add(4)),
  ]);
  expect(outcomes.map(({ status }) => status)).toStrictEqual([
    "fulfilled",
    "rejected",
    "rejected",
    "fulfilled",
  ]);
  expect(outcomes[1]).toMatchObject({ reason: failure });
  expect(stored()).toStrictEqual([1, 4]);
});

test("a write resolves with what its work returns, and only after the commit", async () => {
  const { writer, connection, add, stored } = await openWriter();
  const seen = await Promise.all(
    [1, 2, 3].map(async (n) => {
      const answer = await writer.write(() => {
        add(n);
        return { n, inTransaction: connection.inTransaction };
      });
      return { answer, stored: stored(), inTransaction: connection.inTransaction };
    }),
  );
  expect(seen).toStrictEqual(
    [1, 2, 3].map((n) => ({
      answer: { n, inTransaction: true },
      stored: [1, 2, 3],
      inTransaction: false,
    })),
  );
});

test("all writes of one turn share a commit", async () => {
  const { writer, foreign, add } = await openWriter();
  const version = () => foreign.pragma("data_version", { simple: true });
  const states: unknown[] = [version()];
  const writes = Array.from({ length: 50 }, async (_, n) => {
    await writer.write(() => add(n));
    states.push(version());
  });
  await Promise.all(writes);
  expect(new Set(states).size).toBe(2);
});

test("a write sees what an earlier one of its group wrote", async () => {
  const { writer, connection, add } = await openWriter();
  const first = writer.write(() => add(1));
  const second = writer.write(() => connection.prepare("SELECT n FROM number").pluck().all());
  expect(await second).toStrictEqual([1]);
  await first;
});

test("synchronous is FULL on a connection that has written", async () => {
  const { writer, connection, add } = await openWriter();
  await writer.write(() => add(1));
  expect(connection.pragma("synchronous", { simple: true })).toBe(2);
  expect(connection.pragma("journal_mode", { simple: true })).toBe("wal");
  expect(connection.pragma("secure_delete", { simple: true })).toBe(1);
});

test("a write inside a write is refused", async () => {
  const { writer, add, stored } = await openWriter();
  const outer = writer.write(() => {
    add(1);
    void writer.write(() => add(2));
  });
  await expect(outer).rejects.toThrow();
  await writer.write(() => add(3));
  expect(stored()).toStrictEqual([3]);
});

test("asynchronous work is refused, and what it wrote is undone", async () => {
  const { writer, add, stored } = await openWriter();
  await expect(writer.write(async () => add(1))).rejects.toThrow(TypeError);
  expect(stored()).toStrictEqual([]);
});

test("a foreign lock of 300 ms delays a write and does not fail it", async () => {
  const { writer, foreign, add, stored } = await openWriter();
  foreign.exec("BEGIN IMMEDIATE");
  const began = performance.now();
  setTimeout(() => foreign.exec("COMMIT"), 300);
  let turns = 0;
  const turning = setInterval(() => turns++, 10);
  await writer.write(() => add(1));
  clearInterval(turning);
  expect(performance.now() - began).toBeGreaterThan(290);
  // The event loop was free meanwhile.
  expect(turns).toBeGreaterThan(3);
  expect(stored()).toStrictEqual([1]);
});

test("SQLITE_FULL fails only the write that met it, and those it took with it", async () => {
  const { writer, connection, add, stored } = await openWriter();
  await writer.write(() => add(1));
  connection.exec("CREATE TABLE bulk (data BLOB)");
  const pages = Number(connection.pragma("page_count", { simple: true }));
  connection.pragma(`max_page_count = ${pages + 2}`);
  const fill = connection.prepare("INSERT INTO bulk (data) VALUES (zeroblob(100000))");
  const outcomes = [
    writer.write(() => add(2)),
    writer.write(() => {
      fill.run();
    }),
    writer.write(() => add(3)),
  ];
  const settled = await Promise.allSettled(outcomes);
  expect(settled.map(({ status }) => status)).toStrictEqual(["rejected", "rejected", "fulfilled"]);
  expect(await Promise.all(outcomes.slice(0, 2).map(refusalOf))).toStrictEqual([
    "UNAVAILABLE",
    "UNAVAILABLE",
  ]);
  expect(stored()).toStrictEqual([1, 3]);
  expect(writer.isWritable()).toBe(true);
});

test("a file that cannot be written any more ends the writer, and says so", async () => {
  const { writer, connection, add, stored } = await openWriter();
  await writer.write(() => add(1));
  connection.pragma("query_only = ON");
  expect(await refusalOf(writer.write(() => add(2)))).toBe("UNAVAILABLE");
  expect(writer.isWritable()).toBe(false);
  connection.pragma("query_only = OFF");
  expect(await refusalOf(writer.write(() => add(3)))).toBe("UNAVAILABLE");
  expect(stored()).toStrictEqual([1]);
});

test("a failing commit answers UNAVAILABLE to all of the group, and nothing is stored", async () => {
  const { writer, connection, add, stored } = await openWriter();
  connection.exec(
    `CREATE TABLE child (n INTEGER REFERENCES number (n) DEFERRABLE INITIALLY DEFERRED)`,
  );
  const orphan = connection.prepare("INSERT INTO child (n) VALUES (99)");
  const group = [
    writer.write(() => add(1)),
    writer.write(() => {
      orphan.run();
    }),
  ];
  expect(await Promise.all(group.map(refusalOf))).toStrictEqual(["UNAVAILABLE", "UNAVAILABLE"]);
  await writer.write(() => add(2));
  expect(stored()).toStrictEqual([2]);
});

test("close drains: what waits is committed, what comes later is UNAVAILABLE", async () => {
  const { writer, add, stored } = await openWriter();
  const waiting = [1, 2, 3].map((n) => writer.write(() => add(n)));
  const closed = writer.close();
  expect(await refusalOf(writer.write(() => add(4)))).toBe("UNAVAILABLE");
  await closed;
  expect(stored()).toStrictEqual([1, 2, 3]);
  await Promise.all(waiting);
  expect(writer.isWritable()).toBe(false);
  await writer.close();
});

test("a read between commits sees what is durable; of a closed file it is UNAVAILABLE", async () => {
  const { writer, connection, add } = await openWriter();
  const count = connection.prepare("SELECT count(*) FROM number").pluck();
  const write = writer.write(() => add(1));
  expect(await writer.read(() => count.get())).toBe(0);
  await write;
  expect(await writer.read(() => count.get())).toBe(1);
  connection.close();
  expect(await refusalOf(writer.read(() => count.get()))).toBe("UNAVAILABLE");
});
