import { sql } from "drizzle-orm";
import { bound } from "../bound.ts";
import type { SqliteContext } from "../context.ts";
import { executionContent } from "../schema.ts";

export type ContentField = "input" | "output" | "progress" | "error";

/** What belongs to an execution and is sealed at rest. */
export interface ExecutionContent {
  /** Empty when there is none. */
  read(execution: ContentOwner, field: ContentField): string;
  /** Replaces what was there; an empty text removes it. Only to be used inside a write. */
  write(execution: ContentOwner, field: ContentField, text: string): void;
}

export interface ContentOwner {
  readonly owner: string;
  readonly id: string;
}

export function createExecutionContent({ db, sealer }: SqliteContext): ExecutionContent {
  const isThis = sql`${executionContent.executionId} = ${bound("id")}
    AND ${executionContent.field} = ${bound("field")}`;
  const find = db
    .select({ sealed: executionContent.sealed })
    .from(executionContent)
    .where(isThis)
    .prepare();
  const upsert = db
    .insert(executionContent)
    .values({
      executionId: sql.placeholder("id"),
      field: sql.placeholder("field"),
      sealed: sql.placeholder("sealed"),
    })
    .onConflictDoUpdate({
      target: [executionContent.executionId, executionContent.field],
      set: { sealed: sql`excluded.sealed` },
    })
    .prepare();
  const remove = db.delete(executionContent).where(isThis).prepare();

  return {
    read({ owner, id }, field) {
      const found = find.get({ id, field });
      return found === undefined ? "" : sealer.open({ owner, id, field }, found.sealed);
    },
    write({ owner, id }, field, text) {
      if (text === "") remove.run({ id, field });
      else upsert.run({ id, field, sealed: sealer.seal({ owner, id, field }, text) });
    },
  };
}
