import { setImmediate } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { FeedBells, type FeedWatcher } from "../src/services/wakeups.ts";

describe("the bell of a feed", () => {
  test("wakes all who listen, at every ring", async () => {
    const bells = new FeedBells();
    const heard = listen(bells, "alice", 100);
    for (let ring = 1; ring <= 3; ring += 1) {
      bells.ring("alice");
      await turns(100);
      expect(heard()).toEqual(Array(100).fill(ring));
    }
  });

  test("wakes nobody before the write that rang is answered, and then a few at a time", async () => {
    const bells = new FeedBells();
    const heard = listen(bells, "alice", 100);
    bells.ring("alice");
    await turns(2);
    expect(sum(heard())).toBe(0);
    await turns(2);
    expect(sum(heard())).toBe(8);
  });

  test("wakes once who is still to be woken when it rings again", async () => {
    const bells = new FeedBells();
    const heard = listen(bells, "alice", 10);
    bells.ring("alice");
    bells.ring("alice");
    await turns(4);
    bells.ring("alice");
    await turns(50);
    expect(heard()).toEqual([2, 2, 2, 2, 2, 2, 2, 2, 1, 1]);
  });

  test("lets other owners go before the rest of its own", async () => {
    const bells = new FeedBells();
    const many = listen(bells, "alice", 100);
    const few = listen(bells, "bob", 1);
    bells.ring("alice");
    bells.ring("bob");
    await turns(7);
    expect([sum(many()), sum(few())]).toEqual([15, 1]);
  });

  test("wakes a few at a time also where each has an owner of its own", async () => {
    const bells = new FeedBells();
    const owners = Array.from({ length: 50 }, (_, i) => `owner-${i}`);
    const heard = owners.map((owner) => listen(bells, owner, 1));
    for (const owner of owners) bells.ring(owner);
    const woken = () => sum(heard.flatMap((each) => each()));
    await turns(4);
    expect(woken()).toBe(8);
    await turns(3 * 6);
    expect(woken()).toBe(50);
  });

  test("wakes nobody who has left", async () => {
    const bells = new FeedBells();
    const left = vi.fn();
    const leaving = bells.listen("alice", left);
    const heard = listen(bells, "alice", 1);
    bells.ring("alice");
    leaving[Symbol.dispose]();
    await turns(20);
    expect(left).not.toHaveBeenCalled();
    expect(heard()).toEqual([1]);
  });

  test("tells those who watch of each ring at once, and when all of an owner have been woken", async () => {
    const bells = new FeedBells();
    const watcher = { rang: vi.fn(), quiet: vi.fn() } satisfies FeedWatcher;
    bells.watch(watcher);
    const heard = listen(bells, "alice", 20);
    listen(bells, "bob", 1);
    bells.ring("alice");
    expect(watcher.rang.mock.calls).toEqual([["alice"]]);
    // Others that ring all the time do not put it off.
    for (let turn = 0; turn < 40; turn += 1) {
      bells.ring("bob");
      await setImmediate();
      if (sum(heard()) < 20) expect(watcher.quiet).not.toHaveBeenCalledWith("alice");
    }
    expect(watcher.quiet).toHaveBeenCalledWith("alice");
  });

  test("says that it wakes several while it does, and of a lone one never", async () => {
    const bells = new FeedBells();
    listen(bells, "alice", 2);
    listen(bells, "bob", 1);
    const states = () => ["alice", "bob", "carol"].map((owner) => bells.isWakingSeveral(owner));
    expect(states()).toEqual([false, false, false]);
    for (const owner of ["alice", "bob", "carol"]) bells.ring(owner);
    expect(states()).toEqual([true, false, false]);
    await turns(50);
    expect(states()).toEqual([false, false, false]);
  });
});

/** How often each of so many has been woken. */
function listen(bells: FeedBells, owner: string, count: number): () => readonly number[] {
  const listeners = Array.from({ length: count }, () => vi.fn());
  for (const listener of listeners) bells.listen(owner, listener);
  return () => listeners.map(({ mock }) => mock.calls.length);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await setImmediate();
}
