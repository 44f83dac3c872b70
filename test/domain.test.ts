import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nextPosition, readSince } from "../src/domain/cursor.ts";
import { agentOfRoute, mayTake, retryPauseUs, routeOf } from "../src/domain/execution.ts";
import { capabilitySet, type WorkflowRuns, workflowStatus } from "../src/domain/workflow.ts";

const settings = { seed: 20_261_121, numRuns: 500 };

describe("readSince", () => {
  test.each([
    { since: 0, reading: { kind: "all" } },
    { since: 1, reading: { kind: "time", after: 100_000_000_000_000 } },
    { since: 1_750_000_000, reading: { kind: "time", after: 100_000_000_000_000 } },
    { since: 100_000_000_001, reading: { kind: "time", after: 100_000_000_000_999 } },
    { since: 1_750_000_000_000, reading: { kind: "time", after: 1_749_999_999_999_999 } },
    { since: 99_999_999_999_999, reading: { kind: "time", after: 99_999_999_999_999 * 1000 - 1 } },
    { since: 100_000_000_000_000, reading: { kind: "cursor", after: 100_000_000_000_000 } },
    { since: 1_750_000_000_000_000, reading: { kind: "cursor", after: 1_750_000_000_000_000 } },
    { since: 2 ** 53 - 1, reading: { kind: "cursor", after: 2 ** 53 - 1 } },
  ])("$since is $reading.kind", ({ since, reading }) => {
    expect(readSince(since)).toStrictEqual(reading);
  });

  test("what it says to go on from says the same again", () => {
    const again = fc.property(fc.integer({ min: 1, max: 9e12 }), (ms) => {
      const since = readSince(ms);
      const after = since.kind === "all" ? 0 : since.after;
      expect(readSince(after)).toEqual({ kind: "cursor", after });
    });
    fc.assert(again, settings);
  });

  test("the millisecond of a position includes the position", () => {
    const inclusive = fc.property(fc.integer({ min: 1e14 + 1000, max: 9e15 }), (position) => {
      const since = readSince(Math.floor(position / 1000));
      expect(since.kind).toBe("time");
      const after = since.kind === "all" ? 0 : since.after;
      expect(after).toBeLessThan(position);
      expect(after).toBeGreaterThanOrEqual(position - 1000);
    });
    fc.assert(inclusive, settings);
  });
});

describe("nextPosition", () => {
  test.each([
    { head: 0, nowUs: 1_750_000_000_000_000, next: 1_750_000_000_000_000 },
    { head: 1e15, nowUs: 1e15 + 1, next: 1e15 + 1 },
    { head: 1e15, nowUs: 1e15, next: 1e15 + 1 },
    { head: 1e15, nowUs: 1e15 - 1, next: 1e15 + 1 },
    { head: 1e15, nowUs: -5, next: 1e15 + 1 },
    { head: 0, nowUs: 5, next: 1e14 + 1 },
  ])("after $head at $nowUs comes $next", ({ head, nowUs, next }) => {
    expect(nextPosition(head, nowUs)).toBe(next);
  });

  test("always ascends, and is never before the clock", () => {
    const clocks = fc.property(fc.array(fc.integer({ min: -10, max: 10 })), (steps) => {
      let head = 0;
      let nowUs = 1e15;
      for (const step of steps) {
        nowUs += step;
        const next = nextPosition(head, nowUs);
        expect(next).toBeGreaterThan(head);
        expect(next).toBeGreaterThanOrEqual(nowUs);
        head = next;
      }
    });
    fc.assert(clocks, settings);
  });
});

describe("retryPauseUs", () => {
  test.each([
    { failures: 1, ceiling: 1_000_000 },
    { failures: 2, ceiling: 2_000_000 },
    { failures: 3, ceiling: 4_000_000 },
    { failures: 6, ceiling: 32_000_000 },
    { failures: 7, ceiling: 60_000_000 },
    { failures: 100, ceiling: 60_000_000 },
  ])("after $failures failures up to $ceiling µs, with full jitter", ({ failures, ceiling }) => {
    expect(retryPauseUs(failures, 0)).toBe(0);
    expect(retryPauseUs(failures, 0.5)).toBe(ceiling / 2);
    expect(retryPauseUs(failures, 1)).toBe(ceiling);
  });

  test("is a whole number within its ceiling", () => {
    const pauses = fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (failures, random) => {
        const pauseUs = retryPauseUs(failures, random);
        expect(Number.isInteger(pauseUs)).toBe(true);
        expect(pauseUs).toBeGreaterThanOrEqual(0);
        expect(pauseUs).toBeLessThanOrEqual(60_000_000);
      },
    );
    fc.assert(pauses, settings);
  });
});

describe("routeOf and mayTake", () => {
  test.each([
    { agentId: "", required: [], route: "c:" },
    { agentId: "", required: ["gpu"], route: "c:gpu" },
    { agentId: "", required: ["gpu", "pdf"], route: "c:gpu,pdf" },
    { agentId: "agent-1", required: [], route: "a:agent-1" },
    { agentId: "agent-1", required: ["gpu"], route: "a:agent-1" },
  ])("$agentId $required waits in $route", ({ agentId, required, route }) => {
    expect(routeOf(agentId, required)).toBe(route);
    expect(agentOfRoute(route)).toBe(agentId);
  });

  test.each([
    { route: "c:", capabilities: [], may: true },
    { route: "c:gpu", capabilities: [], may: false },
    { route: "c:gpu", capabilities: ["gpu", "pdf"], may: true },
    { route: "c:gpu,pdf", capabilities: ["gpu"], may: false },
    { route: "c:gpu", capabilities: ["gpu2"], may: false },
    { route: "a:agent-1", capabilities: [], may: true },
    { route: "a:agent-10", capabilities: ["gpu"], may: false },
    { route: "a:agent", capabilities: ["gpu"], may: false },
  ])("agent-1 with $capabilities, in $route: $may", ({ route, capabilities, may }) => {
    expect(mayTake(route, "agent-1", new Set(capabilities))).toBe(may);
  });

  test("an agent may take exactly what it covers", () => {
    const names = fc.subarray(["cpu", "gpu", "pdf", "a:agent-1", "c:"]);
    const covering = fc.property(names, names, (required, capabilities) => {
      const route = routeOf("", capabilitySet(required));
      const covers = required.every((it) => capabilities.includes(it));
      expect(mayTake(route, "agent-1", new Set(capabilities))).toBe(covers);
    });
    fc.assert(covering, settings);
  });
});

describe("workflowStatus", () => {
  const lines: readonly (WorkflowRuns & { readonly status: string })[] = [
    { started: 0, waiting: 0, lastOutcome: null, status: "draft" },
    { started: 0, waiting: 0, lastOutcome: "completed", status: "completed" },
    { started: 0, waiting: 0, lastOutcome: "failed", status: "failed" },
    { started: 0, waiting: 1, lastOutcome: null, status: "draft" },
    { started: 0, waiting: 1, lastOutcome: "completed", status: "draft" },
    { started: 1, waiting: 0, lastOutcome: "failed", status: "running" },
    { started: 2, waiting: 3, lastOutcome: null, status: "running" },
  ];
  test.each(lines)("$started started, $waiting waiting, $lastOutcome: $status", (line) => {
    expect(workflowStatus(line)).toBe(line.status);
  });
});

describe("capabilitySet", () => {
  test("is sorted and without doubles, and leaves its source alone", () => {
    const given = Object.freeze(["pdf", "gpu", "pdf", "GPU", "a"]);
    expect(capabilitySet(given)).toStrictEqual(["GPU", "a", "gpu", "pdf"]);
    expect(capabilitySet([])).toStrictEqual([]);
  });

  test("is the same for the same names in any order", () => {
    const shuffled = fc.property(fc.array(fc.string()), (names) => {
      const set = capabilitySet(names);
      expect(capabilitySet([...names].reverse())).toStrictEqual(set);
      expect(capabilitySet([...set, ...names])).toStrictEqual(set);
      expect(new Set(set)).toStrictEqual(new Set(names));
      expect(set).toHaveLength(new Set(names).size);
    });
    fc.assert(shuffled, settings);
  });
});
