import type { Database } from "better-sqlite3";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openSharedStore } from "./sqlite-connection.ts";
import { playHistory } from "./suites/history.ts";
import { history } from "./suites/task-histories.ts";

const name = "after any history, counters equal counts and each row is what its status says";

test(name, { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      await using shared = await openSharedStore();
      const { connection } = shared;
      await playHistory(shared, steps, () => audit(connection));
    }),
    { numRuns: 6 },
  );
});

function audit(connection: Database): void {
  const counted = all(
    connection,
    "SELECT kind, status, n FROM counter WHERE n > 0 AND kind <> 'agent' ORDER BY kind, status",
  );
  const counts = all(
    connection,
    `SELECT 'execution:' || workflow_id AS kind, '' AS status, count(*) AS n
        FROM execution GROUP BY workflow_id
      UNION ALL SELECT 'queued', '', count(*) FROM execution
        WHERE status = 'queued' GROUP BY status
      UNION ALL SELECT 'workflow', status, count(*) FROM workflow GROUP BY status
      ORDER BY 1, 2`,
  );
  expect(counted).toStrictEqual(counts);
  const runs = all(connection, "SELECT id, runs_started, runs_waiting FROM workflow ORDER BY id");
  const active = all(
    connection,
    `SELECT w.id, count(e.started_us) AS runs_started,
        count(e.id) - count(e.started_us) AS runs_waiting
      FROM workflow w LEFT JOIN execution e ON e.workflow_id = w.id AND e.wake_us IS NOT NULL
      GROUP BY w.id ORDER BY w.id`,
  );
  expect(runs).toStrictEqual(active);
  const wrong = all(
    connection,
    `SELECT id, status FROM execution WHERE wake_us IS NOT CASE status
      WHEN 'queued' THEN coalesce(deadline_us, start_deadline_us)
      WHEN 'running' THEN min(lease_until_us, deadline_us, coalesce(cancel_us, deadline_us))
      ELSE NULL END
    OR (status = 'running') <> (lease_until_us IS NOT NULL)
    OR (status IN ('queued', 'running')) <> (finished_us IS NULL)
    OR (status = 'queued' AND cancel_us IS NOT NULL)`,
  );
  expect(wrong).toStrictEqual([]);
}

function all(connection: Database, sql: string): unknown[] {
  return connection.prepare(sql).all();
}
