import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connect, memoryStorage, newKey, type ReplicaStorage } from "../../src/client/client.ts";
import { type Device, openDevice } from "./device.ts";
import { type RestorableServer, startRestorableServer } from "./restorable-server.ts";

let server: RestorableServer;
const open: AsyncDisposable[] = [];
const key = newKey();

beforeEach(async () => {
  server = await startRestorableServer();
});
afterEach(async () => {
  for (const part of open.splice(0)) await part[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

type Options = Omit<Parameters<typeof openDevice>[0], "server" | "id">;

async function device(id: string, options: Options = {}): Promise<Device> {
  const opened = await openDevice({ server, id, key, ...options });
  open.push(opened);
  return opened;
}

async function raw() {
  const token = await server.token({ sub: "me" });
  return connect(server.httpUrl, { token, agentId: "raw" }).sync;
}

const note = (entityId: string, data: string) => ({ type: "note", entityId, data });

async function allPushed(...devices: readonly Device[]): Promise<void> {
  await expect
    .poll(() => devices.map(({ replica }) => replica.pendingCount), { timeout: 20_000 })
    .toEqual(devices.map(() => 0));
}

/** What a device sees that has never been there. */
async function contentOfServer(): Promise<Record<string, string>> {
  const fresh = await device("fresh");
  await fresh.next("upToDate");
  return fresh.content();
}

/** A device whose server is backed up between its changes. */
async function makeHistory(laptop: Device): Promise<void> {
  await laptop.next("upToDate");
  await laptop.replica.push(note("kept", "kept"));
  await laptop.replica.push(note("changed", "old"));
  await laptop.replica.push(note("deleted", "to go"));
  await allPushed(laptop);
  server.backUp();
  await laptop.replica.push(note("changed", "new"));
  await laptop.replica.push(note("added", "added"));
  await laptop.replica.delete("note", "deleted");
  await laptop.replica.push(note("added", "added anew"));
  await laptop.replica.push(note("gone", "short"));
  await laptop.replica.delete("note", "gone");
  await allPushed(laptop);
}

const whole = { "note/kept": "1 kept", "note/changed": "2 new", "note/added": "2 added anew" };

describe("after a restore from a backup", () => {
  test("the devices give back what the server has lost, once, and nothing comes back", async () => {
    const laptop = await device("laptop");
    const phone = await device("phone");
    await makeHistory(laptop);
    await expect.poll(() => phone.content()).toEqual(whole);
    await server.restore();
    const told = await Promise.all([laptop.next("restored"), phone.next("restored")]);
    expect(new Set(told.map(({ epoch }) => epoch)).size).toBe(1);
    await allPushed(laptop, phone);
    expect(await contentOfServer()).toEqual(whole);
    for (const each of [laptop, phone]) expect(await each.content()).toEqual(whole);
    const { records } = await (await raw()).pullState({ since: 0n, includeDeleted: true });
    const revisions = records.map(({ entityId, revision }) => [entityId, Number(revision)]);
    expect(Object.fromEntries(revisions)).toEqual({
      ...{ kept: 1, changed: 2, deleted: 2, added: 1 },
      // Of what was made and deleted since, the deletion alone is known.
      gone: 1,
    });
    // Revisions are counted anew: what is changed from here on is no conflict.
    for (const entityId of ["added", "changed"]) await laptop.replica.push(note(entityId, "later"));
    await laptop.replica.push(note("gone", "back"));
    await allPushed(laptop);
  });

  test("what was done offline comes after what is given back", async () => {
    const laptop = await device("laptop");
    await makeHistory(laptop);
    laptop.line.cut();
    await laptop.next("offline");
    await laptop.replica.push(note("changed", "newest"));
    await laptop.replica.push(note("kept", "kept anew"));
    await laptop.replica.push(note("made offline", "first"));
    await server.restore();
    laptop.line.mend();
    await laptop.next("restored");
    await allPushed(laptop);
    expect(await contentOfServer()).toEqual({
      "note/changed": "3 newest",
      "note/kept": "2 kept anew",
      "note/added": "2 added anew",
      "note/made offline": "1 first",
    });
  });

  test("what others wrote since is not overwritten, though its revision is the same", async () => {
    const laptop = await device("laptop");
    const phone = await device("phone", {
      onConflict: ({ local, server: other }) => ({ data: `${other?.data} + ${local.data}` }),
    });
    await makeHistory(laptop);
    await expect.poll(() => phone.content()).toEqual(whole);
    await laptop.replica.close();
    phone.line.cut();
    await phone.next("offline");
    await phone.replica.push({ ...note("changed", "phone's"), version: "50" });
    await server.restore();
    const other = await device("other");
    await other.next("upToDate");
    await other.replica.push({ ...note("changed", "other's"), version: "7" });
    await allPushed(other);
    phone.line.mend();
    const { conflict } = await phone.next("conflict");
    expect(conflict.server?.data).toBe("other's");
    await allPushed(phone);
    expect((await phone.replica.get("note", "changed"))?.data).toBe("other's + phone's");
  });

  test("what others wrote since is a conflict after a crash too", async () => {
    const storage = memoryStorage();
    const phone = await device("phone", { storage });
    await makeHistory(phone);
    await phone.replica.close();
    await server.restore();
    const other = await device("other");
    await other.next("upToDate");
    await other.replica.push({ ...note("changed", "other's"), version: "1.5" });
    await allPushed(other);
    // What it has met is stored, that it is done is not.
    const doomed = await device("phone", { storage: failingAfter(1, storage) });
    expect(String((await doomed.next("offline")).error)).toContain("crashed");
    await doomed.replica.close();
    const again = await device("phone", { storage, onConflict: () => "server" });
    expect((await again.next("conflict")).conflict.server?.data).toBe("other's");
  });

  test("what was made here unseen of what others have is a conflict after a crash", async () => {
    const laptop = await device("laptop");
    await laptop.next("upToDate");
    server.backUp();
    const storage = memoryStorage();
    const phone = await device("phone", { storage });
    await phone.next("upToDate");
    await phone.replica.stop();
    await phone.replica.push({ ...note("n1", "phone's"), version: "100" });
    await phone.replica.close();
    await server.restore();
    await laptop.next("restored");
    await laptop.replica.push(note("n1", "laptop's"));
    await allPushed(laptop);
    const doomed = await device("phone", { storage: failingAfter(1, storage) });
    expect(String((await doomed.next("offline")).error)).toContain("crashed");
    await doomed.replica.close();
    const again = await device("phone", { storage, onConflict: () => "server" });
    expect((await again.next("conflict")).conflict.server?.data).toBe("laptop's");
  });

  test("a conflict that was not decided is one still, over what is given back", async () => {
    const laptop = await device("laptop");
    await laptop.replica.push(note("n1", "old"));
    await allPushed(laptop);
    server.backUp();
    const answers: (() => void)[] = [];
    const phone = await device("phone", {
      isStarted: false,
      onConflict: () => new Promise((resolve) => answers.push(() => resolve("server"))),
    });
    await phone.replica.push({ ...note("n1", "phone's"), version: "100" });
    await laptop.replica.push(note("n1", "laptop's"));
    await allPushed(laptop);
    await laptop.replica.close();
    phone.replica.start();
    await phone.next("conflict");
    await phone.next("upToDate");
    await server.restore();
    await phone.next("restored");
    answers[0]?.();
    expect((await phone.next("conflict")).conflict.server?.data).toBe("laptop's");
    answers[1]?.();
    await allPushed(phone);
    expect(await contentOfServer()).toEqual({ "note/n1": "2 laptop's" });
  });

  test.each([
    ["two contents of one version are", "2"],
    ["what others wrote since in a lower version is", "1.5"],
  ])("%s a conflict", async (_, version) => {
    const laptop = await device("laptop", {
      onConflict: ({ local, server: other }) => ({ data: `${other?.data} + ${local.data}` }),
    });
    await makeHistory(laptop);
    laptop.line.cut();
    await laptop.next("offline");
    await server.restore();
    const other = await device("other");
    await other.next("upToDate");
    await other.replica.push({ ...note("changed", "other's"), version });
    await allPushed(other);
    laptop.line.mend();
    expect((await laptop.next("conflict")).conflict.server?.version).toBe(version);
    await allPushed(laptop);
    expect((await laptop.replica.get("note", "changed"))?.data).toBe("other's + new");
  });

  test("what was deleted before the backup is deleted, and no conflict", async () => {
    const laptop = await device("laptop");
    const phone = await device("phone");
    await laptop.replica.push(note("n1", "to go"));
    await phone.next("record");
    phone.line.cut();
    await phone.next("offline");
    await laptop.replica.delete("note", "n1");
    await allPushed(laptop);
    server.backUp();
    await server.restore();
    phone.line.mend();
    await phone.next("restored");
    await allPushed(phone);
    expect([await phone.content(), await contentOfServer()]).toEqual([{}, {}]);
  });

  test("an answer about what was there before counts no more", async () => {
    const laptop = await device("laptop");
    await laptop.replica.push(note("n1", "old"));
    await allPushed(laptop);
    const answers: ((data: string) => void)[] = [];
    const phone = await device("phone", {
      onConflict: () => new Promise((resolve) => answers.push((data) => resolve({ data }))),
    });
    await phone.next("upToDate");
    server.backUp();
    phone.line.cut();
    await phone.next("offline");
    await laptop.replica.push(note("n1", "laptop's"));
    await allPushed(laptop);
    await laptop.replica.close();
    await phone.replica.push({ ...note("n1", "phone's"), version: "100" });
    phone.line.mend();
    expect((await phone.next("conflict")).conflict.server?.data).toBe("laptop's");
    await phone.next("upToDate");
    phone.line.cut();
    await server.restore();
    const other = await device("other");
    await other.next("upToDate");
    // As many changes as the laptop's, and the revision is the same again.
    await other.replica.push({ ...note("n1", "other's"), version: "7" });
    await allPushed(other);
    phone.line.mend();
    await phone.next("restored");
    answers[0]?.("merged with the laptop's");
    expect((await phone.next("conflict")).conflict.server?.data).toBe("other's");
    answers[1]?.("merged with the other's");
    await allPushed(phone);
    expect((await phone.replica.get("note", "n1"))?.data).toBe("merged with the other's");
  });

  test("what is not believed there is not overwritten unasked", async () => {
    const phone = await device("phone", {
      onConflict: ({ refusal }) => ({ data: `over ${refusal?.code}` }),
    });
    await makeHistory(phone);
    phone.line.cut();
    await phone.next("offline");
    await phone.replica.push({ ...note("changed", "phone's"), version: "100" });
    await server.restore();
    const junk = { type: "note", entityId: "changed", version: "50", encryptedData: "junk" };
    await (await raw()).pushState(junk);
    phone.line.mend();
    expect((await phone.next("refused")).refusal).toMatchObject({ code: "NOT_SEALED" });
    expect((await phone.next("conflict")).conflict.refusal?.version).toBe("50");
    await allPushed(phone);
    expect((await phone.replica.get("note", "changed"))?.data).toBe("over NOT_SEALED");
  });

  test("a crash at any moment of it loses nothing", async () => {
    const storage = memoryStorage();
    const laptop = await device("laptop", { storage });
    await makeHistory(laptop);
    await laptop.replica.stop();
    await laptop.replica.push(note("changed", "newest"));
    await laptop.replica.close();
    await server.restore();
    let crashes = 0;
    for (let saves = 0; ; saves += 1) {
      const doomed = await device("laptop", { storage: failingAfter(saves, storage) });
      const ended = await Promise.race([
        doomed.next("offline").then(() => "crashed"),
        allPushed(doomed).then(() => doomed.next("upToDate")),
      ]);
      await doomed.replica.close();
      if (ended !== "crashed") break;
      crashes += 1;
    }
    expect(crashes).toBeGreaterThan(2);
    expect(await contentOfServer()).toEqual({ ...whole, "note/changed": "3 newest" });
  });
});

test("a server that was set back unmarked gets back what it has lost", async () => {
  const laptop = await device("laptop");
  await laptop.next("upToDate");
  await laptop.replica.push(note("n1", "old"));
  await allPushed(laptop);
  await server.copy();
  await laptop.next("upToDate");
  await laptop.replica.push(note("n1", "new"));
  await laptop.replica.push(note("n2", "added"));
  await allPushed(laptop);
  await server.setBack();
  await laptop.next("restored");
  await allPushed(laptop);
  expect(await contentOfServer()).toEqual({ "note/n1": "2 new", "note/n2": "1 added" });
});

/** Saves so often, then never again, as a program that crashed. */
function failingAfter(saves: number, storage: ReplicaStorage): ReplicaStorage {
  let left = saves;
  return {
    async open() {
      const opened = await storage.open();
      return {
        state: opened.state,
        async save(change) {
          left -= 1;
          if (left < 0) throw new Error("crashed");
          await opened.save(change);
        },
        close: () => opened.close(),
      };
    },
  };
}
