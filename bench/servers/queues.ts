import type { Database } from "better-sqlite3";
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

/**
 * Queues `count` executions that `matchingNone` may not take; the first owner has all it can. What
 * the others have is a copy of its rows under other names: what is sealed in them opens for nobody.
 */
export async function fillQueues(store: Store, connection: Database, count: number): Promise<void> {
  const whole = Math.floor(count / queueMax);
  await fillQueue(store, { owner: first, count: Math.min(queueMax, count) }, sets);
  for (let number = 1; number < whole; number += 1) copyOwner(connection, queueOwner(number));
  const rest = count - Math.max(1, whole) * queueMax;
  if (rest > 0) await fillQueue(store, { owner: queueOwner(whole), count: rest }, sets);
}

const first = queueOwner(0);
const isOwned = `owner = '${first}'`;
/** Which rows of each table are the first owner's. */
const rowsOf = {
  feed_head: isOwned,
  counter: isOwned,
  workflow: isOwned,
  workflow_payload: `workflow_id GLOB '${first}-*'`,
  execution: isOwned,
  execution_content: `execution_id GLOB 'ex_${first}-*'`,
} as const;

/** Where the owner's name stands, alone or as part of an id. */
const naming = ["owner", "route_owner", "id", "workflow_id", "execution_id", "kind"];

function copyOwner(connection: Database, owner: string): void {
  for (const [table, isIts] of Object.entries(rowsOf)) {
    const columns = connection.prepare<[], { name: string }>(`PRAGMA table_info(${table})`).all();
    const names = columns.map(({ name }) => name);
    const values = names.map((name) =>
      naming.includes(name) ? `replace(${name}, '${first}', '${owner}')` : name,
    );
    connection.exec(
      `INSERT INTO ${table} (${names.join(", ")}) SELECT ${values.join(", ")} FROM ${table}
       WHERE ${isIts}`,
    );
  }
}
