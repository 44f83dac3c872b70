import fc from "fast-check";
import { test } from "vitest";
import { playHistory, type Step } from "./history.ts";
import { minute, type OpenedStore, second } from "./open-store.ts";

/** Any history of creates, polls, reports, late and repeated ones, cancels, sweeps and restarts. */
export function taskHistorySuite(open: () => Promise<OpenedStore>): void {
  test("keeps its promises, and everything ends once time passes", {
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        await using opened = await open();
        await playHistory(opened, steps);
      }),
      { numRuns: 12 },
    );
  });
}

const pick = fc.nat(1000);
const steps: fc.WeightedArbitrary<Step>[] = [
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("create"),
      workflow: fc.nat(1),
      atMostOnce: fc.boolean(),
      maxAttempts: fc.integer({ min: 1, max: 3 }),
      timeoutUs: fc.constantFrom(20 * second, 5 * minute),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      kind: fc.constant("poll"),
      agent: fc.nat(1),
      max: fc.integer({ min: 1, max: 3 }),
      pollId: fc.constantFrom("", "p1", "p2"),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("report"),
      verb: fc.constantFrom("complete", "fail", "release"),
      pick,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("beat"), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("cancel"), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("pass"),
      us: fc.constantFrom(second, 6 * second, 11 * second),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("sweep") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("deregister"), agent: fc.nat(1) }) },
];

/** A history, for `playHistory`. */
export const history = fc.array(fc.oneof(...steps), { minLength: 60, maxLength: 120, size: "max" });
