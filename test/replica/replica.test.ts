import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newKey } from "../../src/client/client.ts";
import { faultsOf } from "../doors/server.ts";
import { type DeviceOptions, note, openWorld, type World } from "./world.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  const faults = faultsOf(world.server);
  await world[Symbol.asyncDispose]();
  expect(faults).toEqual([]);
});

const device = (id: string, options?: DeviceOptions) => world.device(id, options);

const key = newKey();

describe("a replica", () => {
  test("brings what one device pushes to the others, and deletions too", async () => {
    const key = newKey();
    const laptop = await device("laptop", { key });
    const phone = await device("phone", { key });
    await phone.next("upToDate");
    await laptop.replica.push(note("n1", "to be"));
    expect((await phone.next("record")).record).toEqual({
      type: "note",
      entityId: "n1",
      version: "1",
      deleted: false,
      data: "to be",
      isPending: false,
    });
    expect(await phone.content()).toEqual({ "note/n1": "1 to be" });
    await phone.replica.delete("note", "n1");
    expect((await laptop.next("deleted")).record).toMatchObject({ version: "2", deleted: true });
    expect(await laptop.content()).toEqual({});
    expect(await laptop.replica.get("note", "n1")).toBeUndefined();
  });

  test("shows what it has pushed at once, and says when the server has it", async () => {
    const laptop = await device("laptop", { isStarted: false });
    await laptop.replica.push(note("n1", "to be"));
    expect(await laptop.content()).toEqual({ "note/n1": "1 to be pending" });
    expect(laptop.replica.pendingCount).toBe(1);
    laptop.replica.start();
    expect((await laptop.next("pushed")).record).toMatchObject({
      entityId: "n1",
      isPending: false,
    });
    expect(await laptop.content()).toEqual({ "note/n1": "1 to be" });
    expect(laptop.replica.pendingCount).toBe(0);
  });

  test("has the server see nothing but what is sealed", async () => {
    const key = newKey();
    const laptop = await device("laptop", { key });
    await laptop.replica.push(note("n1", "a secret"));
    await laptop.next("pushed");
    const { records } = await (await world.raw()).pullState({});
    expect(records[0]?.encryptedData).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+\.[\w-]+\.[\w-]+$/);
  });

  test("tells of nothing twice, and of its own pushes not as another's", async () => {
    const laptop = await device("laptop");
    await laptop.next("upToDate");
    for (const data of ["one", "two", "three"]) await laptop.replica.push(note("n1", data));
    for (let i = 0; i < 3; i += 1) await laptop.next("pushed");
    const phone = await device("phone");
    await phone.next("record");
    await phone.replica.push(note("n2", "another"));
    await laptop.next("record");
    const told = laptop.events.filter(({ kind }) => kind === "record" || kind === "refused");
    expect(told).toHaveLength(1);
    expect(await world.serverRevision("n1")).toBe(3);
  });

  test("keeps another owner's records apart", async () => {
    const laptop = await device("laptop");
    await laptop.replica.push(note("n1", "mine"));
    await laptop.next("pushed");
    const stranger = await device("stranger", { sub: "you" });
    await stranger.next("upToDate");
    expect(await stranger.content()).toEqual({});
  });
});

describe("what is done offline", () => {
  test("is sent in its order when the line is back", async () => {
    const laptop = await device("laptop");
    await laptop.next("upToDate");
    laptop.line.cut();
    await laptop.next("offline");
    await laptop.replica.push(note("n1", "one"));
    await laptop.replica.push(note("n2", "other"));
    await laptop.replica.push(note("n1", "two"));
    await laptop.replica.delete("note", "n2");
    await laptop.replica.push(note("n1", "three"));
    expect(await laptop.content()).toEqual({ "note/n1": "3 three pending" });
    laptop.line.mend();
    for (let i = 0; i < 5; i += 1) await laptop.next("pushed");
    expect(await laptop.content()).toEqual({ "note/n1": "3 three" });
    // Each change is one revision: none is swallowed, none comes twice.
    expect([await world.serverRevision("n1"), await world.serverRevision("n2")]).toEqual([3, 2]);
    // One call for the first change of each record, one for the second, one for the third.
    expect(laptop.line.calls.filter((path) => path.endsWith("/PushState"))).toHaveLength(3);
  });

  test("misses nothing of what others do meanwhile", async () => {
    const laptop = await device("laptop");
    const phone = await device("phone");
    await phone.next("upToDate");
    phone.line.cut();
    await phone.next("offline");
    for (let i = 0; i < 300; i += 1) await laptop.replica.push(note(`n${i % 50}`, `text ${i}`));
    for (let i = 0; i < 300; i += 1) await laptop.next("pushed");
    phone.line.mend();
    await phone.next("upToDate");
    expect(await phone.content()).toEqual(await laptop.content());
  });

  test("goes out once when the answer was lost", async () => {
    const laptop = await device("laptop", { key: newKey() });
    await laptop.next("upToDate");
    laptop.line.loseAnswersToPushes(3);
    await laptop.replica.push(note("n1", "one"));
    await laptop.replica.push(note("n1", "two"));
    for (let i = 0; i < 3; i += 1) await laptop.next("retrying");
    await laptop.next("pushed");
    expect((await laptop.next("pushed")).record.data).toBe("two");
    expect(await world.serverRevision("n1")).toBe(2);
  });

  test("goes out once when the answer was lost and the program began anew", async () => {
    const key = newKey();
    const laptop = await device("laptop", { key });
    await laptop.next("upToDate");
    laptop.line.loseAnswersToPushes(1);
    await laptop.replica.push(note("n1", "one"));
    await laptop.next("retrying");
    laptop.line.cut();
    await laptop.replica.close();
    const again = await device("laptop", { key, storage: laptop.storage });
    await again.next("pushed");
    expect(await again.content()).toEqual({ "note/n1": "1 one" });
    expect(await world.serverRevision("n1")).toBe(1);
  });
});

describe("what cannot be pushed", () => {
  test.each([
    ["no type", { type: "" }],
    ["a long type", { type: "t".repeat(65) }],
    ["a long id", { entityId: "n".repeat(257) }],
    ["NUL", { entityId: "a\0b" }],
    ["half a character", { data: "\ud800" }],
    ["nothing", { data: "" }],
    ["too much", { data: "x".repeat(1024 * 1024 + 1) }],
    ["no version", { version: "latest" }],
  ])("is refused at once: %s", async (_, change) => {
    const phone = await device("phone", { isStarted: false });
    const pushing = phone.replica.push({ ...note("n1", "fine"), ...change });
    await expect(pushing).rejects.toMatchObject({ code: "BAD_RECORD" });
    expect(phone.replica.pendingCount).toBe(0);
  });

  test("is a version that is not greater", async () => {
    const phone = await device("phone", { isStarted: false });
    await phone.replica.push({ ...note("n1", "one"), version: "1.10.0" });
    for (const version of ["1.10.0", "v1.10", "1.9.9", "1.10.0-rc.1", "1.10.0+build"]) {
      const pushing = phone.replica.push({ ...note("n1", "two"), version });
      await expect(pushing).rejects.toMatchObject({ code: "VERSION_NOT_GREATER" });
    }
    const { version } = await phone.replica.push(note("n1", "two"));
    expect(version).toBe("1.10.1");
  });

  test("as the server sees it is held alone", async () => {
    // A storage that holds what an older program took for a record.
    const phone = await device("phone", { isStarted: false });
    await phone.replica.push(note("n1", "one"));
    await phone.replica.push(note("n3", "three"));
    await phone.replica.close();
    const storage = await phone.storage.open();
    const bad = { type: "note", entityId: "n2", version: "latest", deleted: false };
    const push = { ...bad, order: 1.5, mutationId: "m", encryptedData: "x", expectedRevision: 0 };
    await storage.save({ pushes: [push] });
    const again = await device("phone", { storage: phone.storage });
    expect((await again.next("held")).record.entityId).toBe("n2");
    await again.next("pushed");
    await again.next("pushed");
    expect(
      (await (await world.raw()).pullState({})).records.map(({ entityId }) => entityId),
    ).toEqual(["n1", "n3"]);
  });
});

describe("update", () => {
  test("changes the record as it is at that moment", async () => {
    const phone = await device("phone");
    const adding = Array.from({ length: 20 }, () =>
      phone.replica.update("count", "c1", (held) => `${Number(held?.data ?? 0) + 1}`),
    );
    await Promise.all(adding);
    for (let i = 0; i < 20; i += 1) await phone.next("pushed");
    expect(await phone.content()).toEqual({ "count/c1": "20 20" });
  });

  test("of two devices at once counts every change", async () => {
    const add = (data: string | undefined) => `${Number(data ?? 0) + 1}`;
    const ids = ["laptop", "phone"];
    const devices = await Promise.all(
      ids.map((id) =>
        device(id, { key, onConflict: ({ server: other }) => ({ data: add(other?.data) }) }),
      ),
    );
    for (const each of devices) await each.next("upToDate");
    for (let i = 0; i < 10; i += 1) {
      for (const { replica } of devices) await replica.update("count", "c1", (c) => add(c?.data));
      for (const each of devices) await each.next("pushed");
    }
    const third = await device("tablet", { key });
    await third.next("upToDate");
    expect((await third.replica.get("count", "c1"))?.data).toBe("20");
  });
});
