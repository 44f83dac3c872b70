import { sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { invalid } from "../../domain/errors.ts";
import type { ClientStore } from "../port.ts";
import type { SqliteContext } from "./context.ts";
import { client } from "./schema.ts";

const p = sql.placeholder;

export function createClientStore({ db, writer }: SqliteContext): ClientStore {
  const rows = createClientRows(db);
  return {
    addClient: (added) =>
      writer.write(() => {
        const { id, name, owner, agentId, scope, secretHash, createdUs } = added;
        if (rows.readName.get({ name }) !== undefined) {
          throw invalid("name", "is the name of another client");
        }
        rows.insert.run({ id, name, owner, agentId, scope, secretHash, createdUs });
      }),

    removeClient: (nameOrId) => writer.write(() => rows.remove.run({ nameOrId }).changes > 0),

    listClients: () => writer.read(() => rows.list.all()),

    foreignChanges: () =>
      db.get<{ readonly data_version: number }>(sql`PRAGMA data_version`).data_version,
  };
}

function createClientRows(db: BetterSQLite3Database) {
  return {
    readName: db
      .select({ id: client.id })
      .from(client)
      .where(sql`${client.name} = ${p("name")}`)
      .prepare(),
    insert: db
      .insert(client)
      .values({
        id: p("id"),
        name: p("name"),
        owner: p("owner"),
        agentId: p("agentId"),
        scope: p("scope"),
        secretHash: p("secretHash"),
        createdUs: p("createdUs"),
      })
      .prepare(),
    remove: db
      .delete(client)
      .where(sql`${client.name} = ${p("nameOrId")} OR ${client.id} = ${p("nameOrId")}`)
      .prepare(),
    list: db.select().from(client).orderBy(client.name).prepare(),
  };
}
