import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newKey } from "../../src/client/client.ts";
import { faultsOf } from "../doors/server.ts";
import type { Device } from "./device.ts";
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

describe("two devices that change the same record", () => {
  test("never overwrite each other unseen", async () => {
    const laptop = await device("laptop");
    await laptop.replica.push(note("n1", "base"));
    await laptop.next("pushed");
    const phone = await device("phone", {
      onConflict: ({ local, server: other }) => ({ data: `${other?.data} + ${local.data}` }),
    });
    await phone.next("upToDate");
    phone.line.cut();
    await phone.next("offline");
    await laptop.replica.push(note("n1", "laptop's"));
    // A far greater version must not win either.
    await phone.replica.push({ ...note("n1", "phone's"), version: "100" });
    await laptop.next("pushed");
    phone.line.mend();
    const { conflict } = await phone.next("conflict");
    expect(conflict.local).toMatchObject({ version: "100", data: "phone's", isPending: true });
    expect(conflict.server).toMatchObject({ version: "2", data: "laptop's", isPending: false });
    await phone.next("pushed");
    const merged = { "note/n1": "101 laptop's + phone's" };
    expect(await phone.content()).toEqual(merged);
    await laptop.next("record");
    expect(await laptop.content()).toEqual(merged);
    expect(await world.serverRevision("n1")).toBe(3);
  });

  test("may keep the server's", async () => {
    const laptop = await device("laptop");
    const phone = await device("phone", { isStarted: false, onConflict: () => "server" });
    await phone.replica.push(note("n1", "phone's"));
    await phone.replica.push(note("n1", "phone's second"));
    await laptop.replica.push(note("n1", "laptop's"));
    await laptop.next("pushed");
    phone.replica.start();
    const { conflict } = await phone.next("conflict");
    expect(conflict.local.data).toBe("phone's second");
    expect((await phone.next("record")).record.data).toBe("laptop's");
    expect(await phone.content()).toEqual({ "note/n1": "1 laptop's" });
    expect([phone.replica.pendingCount, await world.serverRevision("n1")]).toEqual([0, 1]);
  });

  test.each([
    ["what is pushed", (phone: Device) => phone.replica.push(note("n1", "phone's")), "2 phone's"],
    ["a deletion", (phone: Device) => phone.replica.delete("note", "n1"), undefined],
  ])("may push %s over the server's", async (_, act, expected) => {
    const laptop = await device("laptop", { key });
    const phone = await device("phone", { key, isStarted: false, onConflict: () => "local" });
    await act(phone);
    await laptop.replica.push(note("n1", "laptop's"));
    await laptop.next("pushed");
    phone.replica.start();
    await phone.next("pushed");
    expect((await phone.content())["note/n1"]).toBe(expected);
    expect(await world.serverRevision("n1")).toBe(2);
  });

  test("may delete what the other changed, and see it deleted before they change it", async () => {
    const laptop = await device("laptop", { key });
    await laptop.replica.push(note("n1", "base"));
    await laptop.next("pushed");
    const phone = await device("phone", { key, onConflict: () => ({ deleted: true }) });
    await phone.next("record");
    phone.line.cut();
    await phone.next("offline");
    await laptop.replica.delete("note", "n1");
    await laptop.next("pushed");
    await phone.replica.push({ ...note("n1", "changed"), version: "2" });
    phone.line.mend();
    const { conflict } = await phone.next("conflict");
    expect(conflict.server).toEqual({
      ...{ type: "note", entityId: "n1", version: "2", deleted: true, isPending: false },
    });
    expect((await phone.next("pushed")).record).toMatchObject({ version: "3", deleted: true });
  });

  test("are asked with the whole record, however large it is", async () => {
    const large = "x".repeat(700_000);
    const laptop = await device("laptop", { key });
    const phone = await device("phone", { isStarted: false, key, onConflict: () => "server" });
    // Together these are more than an answer carries.
    for (let i = 0; i < 6; i += 1) {
      await laptop.replica.push(note(`n${i}`, `${i}${large}`));
      await phone.replica.push(note(`n${i}`, "small"));
    }
    for (let i = 0; i < 6; i += 1) await laptop.next("pushed");
    phone.replica.start();
    const datas: (string | undefined)[] = [];
    for (let i = 0; i < 6; i += 1) datas.push((await phone.next("conflict")).conflict.server?.data);
    expect(datas.map((data) => data?.length)).toEqual(Array(6).fill(large.length + 1));
    for (let i = 0; i < 6; i += 1) await phone.next("record");
    expect(await phone.content()).toEqual(await laptop.content());
  });

  test("are asked again when the answer comes too late", async () => {
    const laptop = await device("laptop");
    const answers: ((data: string) => void)[] = [];
    const phone = await device("phone", {
      isStarted: false,
      onConflict: () => new Promise((resolve) => answers.push((data) => resolve({ data }))),
    });
    await phone.replica.push(note("n1", "phone's"));
    await laptop.replica.push(note("n1", "laptop's"));
    await laptop.next("pushed");
    phone.replica.start();
    await phone.next("conflict");
    await phone.next("upToDate");
    // Others are not held up while somebody thinks.
    await phone.replica.push(note("n2", "meanwhile"));
    expect((await phone.next("pushed")).record.entityId).toBe("n2");
    await laptop.replica.push(note("n1", "laptop's second"));
    await laptop.next("pushed");
    answers[0]?.("merged with the first");
    const { conflict } = await phone.next("conflict");
    expect(conflict.server?.data).toBe("laptop's second");
    answers[1]?.("merged with the second");
    await phone.next("pushed");
    expect((await phone.replica.get("note", "n1"))?.data).toBe("merged with the second");
    expect(await world.serverRevision("n1")).toBe(3);
  });

  test("are asked again when more was changed here meanwhile", async () => {
    const laptop = await device("laptop");
    const answers: ((data: string) => void)[] = [];
    const phone = await device("phone", {
      isStarted: false,
      onConflict: () => new Promise((resolve) => answers.push((data) => resolve({ data }))),
    });
    await phone.replica.push(note("n1", "phone's"));
    await laptop.replica.push(note("n1", "laptop's"));
    await laptop.next("pushed");
    phone.replica.start();
    await phone.next("conflict");
    await phone.replica.push(note("n1", "phone's second"));
    answers[0]?.("merged with the first");
    expect((await phone.next("conflict")).conflict.local.data).toBe("phone's second");
    answers[1]?.("merged with the second");
    expect((await phone.next("pushed")).record.data).toBe("merged with the second");
    expect([phone.replica.pendingCount, await world.serverRevision("n1")]).toEqual([0, 2]);
  });

  test("keep what they wanted to push when nobody can say what becomes of it", async () => {
    const laptop = await device("laptop");
    const phone = await device("phone", { isStarted: false });
    await phone.replica.push(note("n1", "phone's"));
    await laptop.replica.push(note("n1", "laptop's"));
    await laptop.next("pushed");
    phone.replica.start();
    expect((await phone.next("held")).record).toEqual({ type: "note", entityId: "n1" });
    expect(await phone.content()).toEqual({ "note/n1": "1 phone's pending" });
    await phone.replica.push(note("n1", "phone's second"));
    await phone.next("pushed");
    expect(await world.serverRevision("n1")).toBe(2);
  });

  test("do not go round for ever", async () => {
    const sync = await world.raw();
    await sync.pushState({ ...(await rawNote("n1", "1")) });
    let version = 1;
    const phone = await device("phone", {
      isStarted: false,
      async onConflict() {
        version += 1;
        await sync.pushState(await rawNote("n1", `${version}`));
        return { data: "mine", version: `${1000 + version}` };
      },
    });
    await phone.replica.push(note("n1", "mine"));
    phone.replica.start();
    const { error } = await phone.next("held");
    expect(error).toMatchObject({ code: "TOO_MANY_CONFLICTS" });
    expect(version).toBe(9);
    await phone.replica.discard("note", "n1");
    expect(await phone.content()).toEqual({ "note/n1": "9 raw 9" });
  });
});

async function rawNote(entityId: string, version: string) {
  return { type: "note", entityId, version, encryptedData: `raw ${version}` };
}
