import fc from "fast-check";
import { expect, test } from "vitest";
import { memoryStorage, newKey } from "../../src/client/client.ts";
import { startTestServer } from "../doors/server.ts";
import { type Device, openDevice } from "./device.ts";

/** What happens to one of the devices. */
type Step =
  | { readonly act: "add"; readonly device: number; readonly record: number }
  | { readonly act: "cut" | "mend" | "lose answers" | "begin anew"; readonly device: number };

const device = fc.nat(2);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ act: fc.constant("add" as const), device, record: fc.nat(2) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom("cut" as const, "mend", "lose answers", "begin anew"),
      device,
    }),
  },
);

/** Sets of words as texts: who merges two of them loses no word. */
function union(...texts: readonly (string | undefined)[]): string {
  return [...new Set(texts.flatMap((text) => text?.split(" ") ?? []))].sort().join(" ");
}

test("whatever befalls three devices, none loses a word, and all come to the same", {
  timeout: 180_000,
}, async () => {
  await using server = await startTestServer();
  const key = newKey();
  let runs = 0;
  const converging = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    runs += 1;
    const sub = `owner ${runs}`;
    const storages = [memoryStorage(), memoryStorage(), memoryStorage()];
    const start = (i: number) =>
      openDevice({
        ...{ server, sub, key, id: `device-${i}` },
        ...(storages[i] === undefined ? {} : { storage: storages[i] }),
        random: Math.random,
        onConflict: ({ local, server: other }) => ({ data: union(local.data, other?.data) }),
      });
    const devices = await Promise.all([0, 1, 2].map(start));
    const words = new Map<string, string[]>();
    for (const [i, each] of steps.entries()) {
      const used = devices[each.device];
      if (used === undefined) continue;
      if (each.act === "add") {
        const id = `r${each.record}`;
        const word = `w${i}`;
        words.set(id, [...(words.get(id) ?? []), word]);
        await used.replica.update("set", id, (held) => union(held?.data, word));
      } else if (each.act === "begin anew") {
        await used.replica.close();
        devices[each.device] = await start(each.device);
      } else harm(used, each.act);
    }
    for (const { line } of devices) line.mend();
    const expected = [...words].map(([id, all]) => [id, union(...all)]).sort();
    const held = () => Promise.all(devices.map(settledContent));
    await expect.poll(held, { timeout: 30_000 }).toEqual(devices.map(() => expected));
    for (const { replica, events } of devices) {
      await replica.close();
      expect(events.filter(({ kind }) => kind === "refused" || kind === "held")).toEqual([]);
    }
  });
  await fc.assert(converging, { numRuns: 15 });
});

function harm({ line }: Device, act: "cut" | "mend" | "lose answers"): void {
  if (act === "cut") line.cut();
  if (act === "mend") line.mend();
  if (act === "lose answers") line.loseAnswersToPushes(2);
}

/** Undefined while anything is pending. */
async function settledContent({ replica }: Device): Promise<readonly string[][] | undefined> {
  if (replica.pendingCount > 0) return undefined;
  const records = await replica.list();
  return records.map(({ entityId, data }) => [entityId, data]).sort();
}
