import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newKey, sealRecord } from "../../src/client/client.ts";
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

describe("a record that is not what it says", () => {
  const binding = { type: "note", entityId: "n1", version: "2" };

  test.each([
    ["for another record", { ...binding, entityId: "n2" }, "WRONG_RECORD"],
    ["for another type", { ...binding, type: "memo" }, "WRONG_RECORD"],
    ["for another version", { ...binding, version: "3" }, "WRONG_RECORD"],
    ["as a deletion", { ...binding, deleted: true }, "WRONG_RECORD"],
  ])("because it was sealed %s is refused, and the local one stays", async (_, sealedFor, code) => {
    const phone = await device("phone", { key });
    await phone.replica.push(note("n1", "good"));
    await phone.next("pushed");
    const encryptedData = await sealRecord(sealedFor, "forged", key);
    await (await world.raw()).pushState({ ...binding, encryptedData });
    expect((await phone.next("refused")).refusal).toEqual({ code, ...binding, deleted: false });
    expect(await phone.content()).toEqual({ "note/n1": "1 good" });
  });

  test.each([
    ["with another key", async () => sealRecord(binding, "x", newKey()), "CANNOT_OPEN"],
    ["not at all", async () => "in the clear", "NOT_SEALED"],
  ])("because it was sealed %s is refused", async (_, seal, code) => {
    const phone = await device("phone", { key });
    await phone.next("upToDate");
    await (await world.raw()).pushState({ ...binding, encryptedData: await seal() });
    expect((await phone.next("refused")).refusal.code).toBe(code);
    expect(await phone.content()).toEqual({});
  });

  test("is refused when it is a deletion without proof", async () => {
    const phone = await device("phone", { key });
    await phone.replica.push(note("n1", "good"));
    await phone.next("pushed");
    await (await world.raw()).pushState({ ...binding, deleted: true });
    expect((await phone.next("refused")).refusal).toMatchObject({ code: "NOT_SEALED" });
    expect(await phone.content()).toEqual({ "note/n1": "1 good" });
  });

  test("does not stop what comes after it, nor what goes over it", async () => {
    const phone = await device("phone", {
      key,
      onConflict: ({ refusal }) => ({ data: `over ${refusal?.code} ${refusal?.version}` }),
    });
    await phone.replica.push(note("n1", "good"));
    await phone.next("pushed");
    const sync = await world.raw();
    await sync.pushState({ ...binding, encryptedData: "junk" });
    await phone.next("refused");
    const other = { type: "note", entityId: "n2", version: "1" };
    await sync.pushState({ ...other, encryptedData: await sealRecord(other, "fine", key) });
    expect((await phone.next("record")).record.data).toBe("fine");
    await phone.replica.push({ ...note("n1", "better"), version: "2" });
    expect((await phone.next("conflict")).conflict.server).toBeUndefined();
    await phone.next("pushed");
    expect((await phone.replica.get("note", "n1"))?.data).toBe("over NOT_SEALED 2");
  });

  test("comes as it is to a replica without a key", async () => {
    const phone = await device("phone");
    await phone.next("upToDate");
    await (await world.raw()).pushState({ ...binding, encryptedData: "anything" });
    expect((await phone.next("record")).record.data).toBe("anything");
  });
});
