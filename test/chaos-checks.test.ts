import { describe, expect, test } from "vitest";
import { findViolations } from "./chaos/checks.ts";
import { type History, newHistory, type Reported, type Seen } from "./chaos/history.ts";

const calm = { speed: 1, outages: [], isClockStepped: false };

const seen = (status: string, sentMs: number, more: Partial<Seen> = {}): Seen => ({
  ...{ executionId: "e1", output: "", error: "null", attempt: 1, lifeMs: null },
  ...{ status, sentMs, answeredMs: sentMs + 1, ...more },
});
const completed = (sentMs: number, token = "t1") =>
  seen("completed", sentMs, { output: token, lifeMs: 500 });
const grant = (token: string, attempt: number, answeredMs: number, agentId = "a") => ({
  ...{ executionId: "e1", token, attempt, answeredMs, agentId },
});
const report = (token: string, sentMs: number, more: Partial<Reported> = {}): Reported => ({
  ...{ executionId: "e1", token, verb: "complete", isFinal: false, answer: "ok" },
  ...{ sentMs, answeredMs: sentMs + 1, ...more },
});

/** One execution that ran once and was completed. */
function goodHistory(): History {
  const history = newHistory();
  history.tried.push({
    ...{ key: "k1", workflowId: "w1", atMostOnce: true, maxAttempts: 1 },
    ...{ timeoutS: 10, startTimeoutS: 10 },
  });
  history.accepted.push({ key: "k1", executionId: "e1", sentMs: 0, answeredMs: 1 });
  history.granted.push(grant("t1", 1, 10));
  history.reported.push(report("t1", 20));
  history.seen.push(seen("pending", 5), completed(30));
  history.final.set("e1", completed(40));
  history.workflows.set("w1", { total: 1, status: "completed" });
  return history;
}

test("a good history has no violations", () => {
  expect(findViolations(goodHistory(), calm)).toEqual([]);
});

describe("each check can fail", () => {
  const bad: Record<string, (history: History) => void> = {
    "no answer shows a fault": ({ faults }) => faults.push("INTERNAL_ERROR"),
    "every acknowledged execution exists: gone": ({ final }) => final.set("e1", "missing"),
    "every acknowledged execution exists: for ever": ({ final }) =>
      final.set("e1", seen("pending", 40)),
    "a key is one execution: became": ({ accepted }) =>
      accepted.push({ key: "k1", executionId: "e2", sentMs: 2, answeredMs: 3 }),
    "a key is one execution: executions of": ({ workflows }) =>
      workflows.set("w1", { total: 2, status: "completed" }),
    "a terminal state never changes": ({ seen: looks }) => looks.push(seen("failed", 35)),
    "the result is that of the winning token: completed by": ({ reported }) =>
      reported.push(report("t2", 22)),
    "the result is that of the winning token: was told": ({ final }) =>
      final.set("e1", completed(40, "t9")),
    "the result is that of the winning token: nobody": ({ reported }) => reported.splice(0, 1),
    "once another attempt was handed out": ({ granted }) => granted.push(grant("t2", 2, 15)),
    "the winner is told so: won": ({ reported }) =>
      reported.push(report("t1", 25, { answer: "LEASE_LOST" })),
    "the winner is told so: taken": ({ reported }) =>
      reported.push(
        report("t0", 12, { verb: "release" }),
        report("t0", 25, { verb: "release", answer: "LEASE_LOST" }),
      ),
    "a token is one agent's": ({ granted }) => granted.push(grant("t1", 1, 11, "b")),
    "at_most_once never runs twice": ({ granted }) => granted.push(grant("t0", 1, 5)),
    "attempts stay within": ({ granted }) => granted.push(grant("t0", 6, 5)),
    "a failure that is final ends it": ({ reported }) =>
      reported.push(report("t0", 12, { verb: "fail", isFinal: true })),
    "a cancel that was accepted": ({ cancels, final }) => {
      cancels.push({ executionId: "e1", status: "running", answeredMs: 12 });
      final.set("e1", seen("failed", 40));
    },
    "nothing outlives its time-outs": ({ seen: looks }) => looks.push(seen("running", 25_000)),
    "what times out ends in time": ({ final }) =>
      final.set("e1", { ...completed(40), lifeMs: 23_000 }),
    "a workflow's status": ({ workflows }) => workflows.set("w1", { total: 1, status: "running" }),
  };
  test.each(Object.entries(bad))("%s", (name, spoil) => {
    const history = goodHistory();
    spoil(history);
    const [check = "", word = ""] = name.split(": ");
    const found = findViolations(history, calm).filter((text) => text.startsWith(check));
    expect(found.join()).toContain(word);
    expect(found.length).toBeGreaterThan(0);
  });
});

test("time that the server was not given counts for no time-out", () => {
  const history = goodHistory();
  history.seen.push(seen("running", 25_000));
  const outages = [{ fromMs: 20_500, untilMs: 24_900 }];
  const found = findViolations(history, { ...calm, outages });
  expect(found.filter((text) => text.startsWith("nothing outlives"))).toEqual([]);
});
