import { execFile } from "node:child_process";
import { readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  memoryStorage,
  type PendingPush,
  type ReplicaStorage,
  type StoredChange,
  type StoredRecord,
  type StoredState,
} from "../../src/client/client.ts";
import { fileStorage } from "../../src/client/replica/file-storage.ts";
import { makeFolder } from "../suites/open-store.ts";

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeEach(async () => {
  folder = await makeFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

const path = () => join(folder.path, "replica");

const record = (entityId: string, version = "1"): StoredRecord => ({
  ...{ type: "note", entityId, version, deleted: false, revision: Number(version) },
  encryptedData: `data of ${entityId} ünï\n${version}`,
});
const push = (order: number, entityId: string): PendingPush => ({
  ...{ type: "note", entityId, version: "9", deleted: false, encryptedData: "new" },
  ...{ order, mutationId: `m${order}`, expectedRevision: order },
});

async function stateOf(storage: ReplicaStorage): Promise<StoredState> {
  const opened = await storage.open();
  await opened.close();
  return sorted(opened.state);
}

function sorted({ position, records, pushes }: StoredState): StoredState {
  const byId = (a: StoredRecord, b: StoredRecord) => (a.entityId < b.entityId ? -1 : 1);
  return { position, records: [...records].sort(byId), pushes };
}

const change: fc.Arbitrary<StoredChange> = fc.record(
  {
    position: fc.record({ cursor: fc.nat(), epoch: fc.constantFrom("a", "b") }),
    records: fc.array(
      fc.tuple(fc.nat(4), fc.integer({ min: 1, max: 9 })).map(([i, v]) => record(`n${i}`, `${v}`)),
      { maxLength: 3 },
    ),
    removed: fc.array(
      fc.nat(4).map((i) => ({ type: "note", entityId: `n${i}` })),
      { maxLength: 2 },
    ),
    pushes: fc.array(
      fc.tuple(fc.nat(6), fc.nat(4)).map(([order, i]) => push(order, `n${i}`)),
      { maxLength: 3 },
    ),
    settled: fc.array(fc.nat(6), { maxLength: 2 }),
  },
  { requiredKeys: [] },
);

describe.each([
  ["memoryStorage", () => memoryStorage()],
  ["fileStorage", () => fileStorage(path())],
])("%s", (_, make) => {
  test("is empty at first", async () => {
    const empty = { position: { cursor: 0, epoch: "" }, records: [], pushes: [] };
    expect(await stateOf(make())).toEqual(empty);
  });

  test("gives back what was saved", async () => {
    const storage = make();
    const opened = await storage.open();
    await opened.save({ position: { cursor: 5, epoch: "e" }, records: [record("a"), record("b")] });
    await opened.save({ pushes: [push(2, "a"), push(1, "c")], removed: [record("b")] });
    await opened.save({ records: [record("a", "2")], settled: [2], pushes: [push(3, "a")] });
    await opened.close();
    expect(await stateOf(storage)).toEqual({
      position: { cursor: 5, epoch: "e" },
      records: [record("a", "2")],
      pushes: [push(1, "c"), push(3, "a")],
    });
  });

  test("takes no more from whoever had it before", async () => {
    const storage = make();
    const first = await storage.open();
    await first.save({ records: [record("a")] });
    const second = await storage.open();
    const late = first.save({ records: [record("b")] });
    await expect(late).rejects.toMatchObject({ code: "STORAGE_TAKEN" });
    await second.save({ records: [record("c")] });
    await first.close();
    await second.close();
    expect((await stateOf(storage)).records).toEqual([record("a"), record("c")]);
  });
});

describe("fileStorage", () => {
  test("says the same as memory, whatever is saved", async () => {
    let run = 0;
    const saving = fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (changes) => {
      run += 1;
      const memory = memoryStorage();
      const file = fileStorage(join(folder.path, `${run}`));
      for (const each of [memory, file]) await saveAll(each, changes);
      expect(await stateOf(file)).toEqual(await stateOf(memory));
    });
    await fc.assert(saving, { numRuns: 30 });
  });

  test("cut off at any byte holds what was saved before, whole", { timeout: 120_000 }, async () => {
    const changes = fc.sample(change, { numRuns: 6, seed: 7 });
    const lengths = await saveAll(fileStorage(path()), changes);
    const journal = await readFile(path());
    const states = await statesAfter(changes);
    const cut = join(folder.path, "cut");
    for (let length = 0; length <= journal.length; length += 1) {
      await writeFile(cut, journal.subarray(0, length));
      const saved = lengths.filter((end) => end <= length).length;
      expect(await stateOf(fileStorage(cut)), `cut at ${length}`).toEqual(states[saved]);
    }
  });

  test("cut off in a line goes on after what is whole", async () => {
    const storage = fileStorage(path());
    const [first = 0] = await saveAll(storage, [{ records: [record("a")] }, { settled: [1] }]);
    await truncate(path(), first + 5);
    await saveAll(storage, [{ records: [record("b")] }]);
    expect((await stateOf(storage)).records).toEqual([record("a"), record("b")]);
  });

  test.each([
    ["another file", async () => writeFile(path(), "my diary\n")],
    [
      "a changed line",
      async () => {
        const text = await readFile(path(), "utf8");
        await writeFile(path(), text.replace("data of a", "data of z"));
      },
    ],
  ])("does not take %s for a replica, nor change it", async (_, harm) => {
    await saveAll(fileStorage(path()), [{ records: [record("a")] }, { records: [record("b")] }]);
    await harm();
    const before = await readFile(path());
    const opening = fileStorage(path()).open();
    await expect(opening).rejects.toMatchObject({ code: "STORAGE_DAMAGED" });
    expect(await readFile(path())).toEqual(before);
  });

  test("does not grow for ever, and is rewritten seldom", async () => {
    const storage = await fileStorage(path()).open();
    const large = "x".repeat(10_000);
    const files = new Set<number>();
    let bytes = 0;
    for (let i = 0; i < 1000; i += 1) {
      await storage.save({
        records: [{ ...record(`n${i % 10}`, `${i + 1}`), encryptedData: large }],
      });
      const { ino, size } = await stat(path());
      files.add(ino);
      bytes = Math.max(bytes, size);
    }
    await storage.close();
    // Ten megabytes were saved, of which a tenth of one counts.
    expect(bytes).toBeLessThan(1.2 * 1024 * 1024);
    expect(files.size).toBeLessThan(15);
    expect(await stateOf(fileStorage(path()))).toMatchObject({ records: Array(10).fill({}) });
  });

  test("is for its user alone", async () => {
    await saveAll(fileStorage(path()), [{ records: [record("a")] }]);
    expect((await stat(path())).mode & 0o777).toBe(0o600);
  });

  test("that cannot be written says so, and holds what it held", async () => {
    const storage = fileStorage(join(folder.path, "none", "replica"));
    await expect(storage.open()).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("survives kill -9 with all that was saved", async () => {
    const program = join(folder.path, "program.ts");
    const module = fileURLToPath(
      new URL("../../src/client/replica/file-storage.ts", import.meta.url),
    );
    await writeFile(
      program,
      `import { fileStorage } from ${JSON.stringify(module)};
       const storage = await fileStorage(${JSON.stringify(path())}).open();
       for (let i = 1; ; i += 1) {
         await storage.save({ position: { cursor: i, epoch: "e" }, records: [] });
         process.stdout.write(i + "\\n");
         if (i === 50) process.kill(process.pid, "SIGKILL");
       }`,
    );
    const killed = await promisify(execFile)(process.execPath, [program]).catch((error) => error);
    expect(killed.signal).toBe("SIGKILL");
    const told = Number(killed.stdout.trim().split("\n").at(-1));
    expect(told).toBeGreaterThan(1);
    const { position } = await stateOf(fileStorage(path()));
    expect(position.cursor).toBeGreaterThanOrEqual(told);
  });
});

/** How long the file was after each; of nothing for memory. */
async function saveAll(
  storage: ReplicaStorage,
  changes: readonly StoredChange[],
): Promise<number[]> {
  const opened = await storage.open();
  const lengths: number[] = [];
  for (const each of changes) {
    await opened.save(each);
    lengths.push((await stat(path()).catch(() => undefined))?.size ?? 0);
  }
  await opened.close();
  return lengths;
}

/** Before the first change, and after each. */
async function statesAfter(changes: readonly StoredChange[]): Promise<StoredState[]> {
  const memory = memoryStorage();
  const states = [await stateOf(memory)];
  for (const each of changes) {
    await saveAll(memory, [each]);
    states.push(await stateOf(memory));
  }
  return states;
}
