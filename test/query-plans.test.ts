import type { Database } from "better-sqlite3";
import { expect, test } from "vitest";
import { openSharedStore } from "./sqlite-connection.ts";

/**
 * Small by nature: the recursive list of lines, one row a set of capabilities; the list that a
 * statement was given; the clients, all of which are wanted.
 */
const scansATable = /^SCAN (?!line|\(subquery|CONSTANT ROW|json_each|client)/;

test("every prepared statement of the store seeks into an index", async () => {
  await using shared = await openSharedStore();
  const { connection, statements } = shared;
  const queries = statements.filter((sql) => /^(with|select|insert|update|delete)/i.test(sql));
  const scans = queries.flatMap((sql) =>
    planOf(connection, sql)
      .filter((step) => scansATable.test(step))
      .map((step) => `${step}: ${sql}`),
  );
  expect(queries.length).toBeGreaterThan(80);
  expect(scans).toStrictEqual([]);
  expect(planOf(connection, "SELECT * FROM execution WHERE due_us > ?")).toStrictEqual([
    expect.stringMatching(scansATable),
  ]);
});

test("a poll seeks the ready line, and the sweeper what is due", async () => {
  await using shared = await openSharedStore();
  const { connection, statements } = shared;
  const plansOf = (words: RegExp) =>
    statements.filter((sql) => words.test(sql)).map((sql) => planOf(connection, sql).join(" | "));
  const lines = plansOf(/select .* from "execution" where status = 'queued'.*LIMIT/s);
  expect(lines).toHaveLength(3);
  for (const plan of lines) {
    expect(plan).toContain("INDEX execution_ready (route_owner=? AND route=?");
    expect(plan).not.toContain("TEMP B-TREE");
  }
  const due = plansOf(/where "execution"."wake_us" <= /);
  expect(due).toStrictEqual(["SEARCH execution USING INDEX execution_wake (wake_us<?)"]);
});

function planOf(connection: Database, sql: string): string[] {
  const explain = connection.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`);
  const values = Array<null>((sql.match(/\?/g) ?? []).length).fill(null);
  return explain.all(...values).map(({ detail }) => detail);
}
