import { type SQL, type SQLWrapper, sql } from "drizzle-orm";

/**
 * A placeholder whose value the planner does not look at. Beside an ORDER BY, a plain `column = ?`
 * makes SQLite plan the statement anew at every run (it is built with STAT4, and better-sqlite3
 * clears bindings after each run): 25 µs where this takes 4.
 */
export function bound(name: string): SQL {
  return sql`+${sql.placeholder(name)}`;
}

/** An ORDER BY with its LIMIT, which has the same trap and which Drizzle takes as a `?` only. */
export function firstBy(order: SQLWrapper): SQL {
  return sql`${order} LIMIT ${bound("limit")}`;
}
