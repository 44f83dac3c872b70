import type { Store } from "../../src/storage/port.ts";
import { fillQueue, queueMax } from "./fill.ts";

/** What queued executions require: a hundred different things. */
const sets = Array.from({ length: 100 }, (_, i) => [`tool-${i}`]);

/** An agent that has nothing of it. */
export const matchingNone = { id: "idle", capabilities: ["sleep"] } as const;

/** An owner can have so many queued and no more: the rest is others'. */
export function queueOwner(number: number): string {
  return `queue-${number}`;
}

/** Queues `count` executions that `matchingNone` may not take; the first owner has all it can. */
export async function fillQueues(store: Store, count: number): Promise<void> {
  for (let from = 0; from < count; from += queueMax) {
    const owner = queueOwner(from / queueMax);
    await fillQueue(store, { owner, count: Math.min(queueMax, count - from) }, sets);
  }
}
