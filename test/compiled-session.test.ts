import Database from "better-sqlite3";
import { asc, eq, sql } from "drizzle-orm";
import { blob, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDrizzle } from "../src/storage/sqlite/compiled-session.ts";

const note = sqliteTable("note", {
  id: text("id").primaryKey(),
  isRead: integer("is_read", { mode: "boolean" }).notNull(),
  at: integer("at", { mode: "timestamp" }),
  size: integer("size"),
  sealed: blob("sealed", { mode: "buffer" }),
});

const p = sql.placeholder;
let connection: Database.Database;
let db: ReturnType<typeof openDrizzle>;

beforeEach(() => {
  connection = new Database(":memory:");
  connection.exec(
    "CREATE TABLE note (id TEXT PRIMARY KEY, is_read INTEGER, at INTEGER, size INTEGER, sealed BLOB)",
  );
  db = openDrizzle(connection);
});

afterEach(() => connection.close());

const full = {
  id: "n1",
  isRead: true,
  at: new Date("2026-01-05T10:00:00Z"),
  size: 7,
  sealed: Buffer.from([1, 2, 255]),
};
const bare = { id: "n2", isRead: false, at: null, size: null, sealed: null };

function insert() {
  return db
    .insert(note)
    .values({ id: p("id"), isRead: p("isRead"), at: p("at"), size: p("size"), sealed: p("sealed") })
    .prepare();
}

describe("a prepared statement", () => {
  test("writes and reads each column by its kind, and NULL", () => {
    const statement = insert();
    expect(statement.run(full).changes).toBe(1);
    statement.run(bare);
    const all = db.select().from(note).orderBy(asc(note.id)).prepare();
    expect(all.all()).toEqual([full, bare]);
    const one = db
      .select()
      .from(note)
      .where(eq(note.id, p("id")))
      .prepare();
    expect([one.get({ id: "n2" }), one.get({ id: "n1" }), one.get({ id: "n3" })]).toEqual([
      bare,
      full,
      undefined,
    ]);
  });

  test("reads what SQL computes as SQLite gives it", () => {
    insert().run(full);
    const statement = db
      .select({ id: note.id, next: sql<number>`${note.size} + ${p("more")}` })
      .from(note)
      .prepare();
    expect(statement.get({ more: 2 })).toEqual({ id: "n1", next: 9 });
  });

  test("reads what SQL computes as it is told to", () => {
    insert().run(full);
    const size = sql<string>`${note.size}`.mapWith((value: number) => `${value} bytes`);
    expect(db.select({ size }).from(note).prepare().all()).toEqual([{ size: "7 bytes" }]);
  });

  test("reads a selection with objects in it", () => {
    insert().run(full);
    const statement = db
      .select({ id: note.id, state: { isRead: note.isRead } })
      .from(note)
      .prepare();
    expect(statement.all()).toEqual([{ id: "n1", state: { isRead: true } }]);
  });

  test("takes constants beside placeholders", () => {
    insert().run(full);
    insert().run(bare);
    const statement = db
      .update(note)
      .set({ isRead: true, size: sql`${p("size")}` })
      .where(eq(note.id, "n2"))
      .prepare();
    expect(statement.run({ size: 3 }).changes).toBe(1);
    expect(db.select().from(note).where(eq(note.id, "n2")).get()).toMatchObject({
      isRead: true,
      size: 3,
    });
  });

  test("is not run with a value missing", () => {
    const { size: _, ...others } = full;
    expect(() => insert().run(others)).toThrow("size");
    expect(db.select().from(note).all()).toEqual([]);
  });

  test("returns what it has written", () => {
    const statement = db
      .insert(note)
      .values({ id: p("id"), isRead: p("isRead") })
      .returning({ isRead: note.isRead })
      .prepare();
    expect(statement.get({ id: "n3", isRead: false })).toEqual({ isRead: false });
  });
});
