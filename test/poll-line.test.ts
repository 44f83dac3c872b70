import { expect, test } from "vitest";
import { spans } from "../src/domain/limits.ts";
import { PollLine } from "../src/services/poll-line.ts";
import { createFakeClock } from "./suites/open-store.ts";

const owner = "ann";

/** A line with a clock that is moved, and polls that note how often they are woken. */
function makeLine() {
  const clock = createFakeClock();
  const line = new PollLine(clock);
  const join = (agentId: string, pollId = "") => {
    const poll = {
      owner,
      agentId,
      pollId,
      woken: 0,
      ended: 0,
      wake: () => {
        poll.woken += 1;
      },
      end: () => {
        poll.ended += 1;
      },
    };
    return { poll, place: line.join(poll) };
  };
  const queued = (route: string) => ({ owner, route, dueUs: clock.steadyUs() });
  return { clock, line, join, queued };
}

const nothing: ReadonlySet<string> = new Set();

test("what comes while a poll looks makes it look again before it waits", () => {
  const { line, join, queued } = makeLine();
  const { poll, place } = join("a");
  line.announce(queued("c:"));
  expect(poll.woken).toBe(0);
  place.looked(nothing, false);
  expect(poll.woken).toBe(1);
});

test("what comes wakes the longest waiting poll that may take it, and no other", () => {
  const { line, join, queued } = makeLine();
  const polls = ["a", "b", "c"].map((id) => join(id));
  for (const { place } of polls) place.looked(id(polls, place) === 0 ? nothing : gpu, false);
  line.announce(queued("c:gpu"));
  expect(polls.map(({ poll }) => poll.woken)).toEqual([0, 1, 0]);
  line.announce(queued("c:gpu"));
  expect(polls.map(({ poll }) => poll.woken)).toEqual([0, 1, 1]);
});

test("a poll that takes something else passes on what it was woken for", () => {
  const { line, join, queued } = makeLine();
  const [a, b] = [join("a"), join("b")];
  a.place.looked(nothing, false);
  b.place.looked(nothing, false);
  line.announce(queued("c:"));
  a.place.looking();
  a.place.looked(nothing, true);
  a.place.leave();
  expect(b.poll.woken).toBe(1);
});

test("a poll that cannot take what it was woken for any more passes it on", () => {
  const { line, join, queued } = makeLine();
  const [a, b] = [join("a"), join("b")];
  a.place.looked(gpu, false);
  b.place.looked(gpu, false);
  line.announce(queued("c:gpu"));
  a.place.looking();
  a.place.looked(nothing, false);
  expect(b.poll.woken).toBe(1);
});

test("what two polls look for and neither finds ends there", () => {
  const { line, join, queued } = makeLine();
  const [a, b] = [join("a"), join("b")];
  a.place.looked(nothing, false);
  b.place.looked(nothing, false);
  line.announce(queued("c:"));
  a.place.looking();
  a.place.looked(nothing, false);
  expect([a.poll.woken, b.poll.woken]).toEqual([1, 0]);
});

test("an agent listens while it polls and 35 s after, not before its first look", () => {
  const { clock, line, join, queued } = makeLine();
  const { place } = join("a");
  expect(line.isListening(queued("c:"))).toBe(false);
  place.looked(nothing, true);
  place.leave();
  clock.advance(spans.listeningMs * 1000 - 1);
  expect(line.isListening(queued("c:"))).toBe(true);
  expect(line.isListening(queued("a:a"))).toBe(true);
  expect(line.isListening(queued("a:b"))).toBe(false);
  clock.advance(2);
  expect(line.isListening(queued("c:"))).toBe(false);
});

test("an agent that was dismissed while it polled listens no more", () => {
  const { clock, line, join, queued } = makeLine();
  const { poll, place } = join("a");
  place.looked(nothing, false);
  line.dismiss(owner, "a");
  expect(poll.ended).toBe(1);
  place.leave();
  expect(line.isListening(queued("c:"))).toBe(false);
  clock.advance(spans.listeningMs * 2000);
  expect(line.isListening(queued("c:"))).toBe(false);
});

test("a second poll of an id ends the first, also when no more may be open", () => {
  const { join } = makeLine();
  const first = join("a", "p1");
  for (let i = 1; i < 1000; i += 1) join("a", `other-${i}`);
  expect(() => join("a", "p2")).toThrow(/1000 polls are open/);
  join("a", "p1");
  expect(first.poll.ended).toBe(1);
});

const gpu: ReadonlySet<string> = new Set(["gpu"]);

function id(polls: readonly { readonly place: unknown }[], place: unknown): number {
  return polls.findIndex((it) => it.place === place);
}
