import type { RecordStore } from "../../port.ts";
import type { SqliteContext } from "../context.ts";
import { createFeedReader } from "./feed.ts";
import { createPusher } from "./push.ts";

export function createRecordStore(context: SqliteContext): RecordStore {
  const { writer, ledger } = context;
  const push = createPusher(context);
  const readFeed = createFeedReader(context);
  return {
    pushRecords: (owner, pushed) => writer.write(() => push(owner, pushed)),
    readFeed: (owner, query) => writer.read(() => readFeed(owner, query)),
    head: (owner) => writer.read(() => ledger.head(owner)),
  };
}
