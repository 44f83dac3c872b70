import { expect, test } from "vitest";
import { play } from "./chaos/play.ts";

/** As many as fit a test run; `npm run chaos` plays as many as you like. */
test.each([1, 2])(
  "a history of faults shows its callers nothing that is wrong: seed %i",
  {
    timeout: 120_000,
  },
  async (seed) => {
    const { violations, counts } = await play({ seed, seconds: 8, speed: 5 });
    expect(violations).toEqual([]);
    expect(counts["executions"]).toBeGreaterThan(5);
    expect(counts["grants"]).toBeGreaterThan(5);
  },
);
