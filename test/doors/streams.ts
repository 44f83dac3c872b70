import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type SubscribeRequestSchema,
  type SyncUpdate,
  UpdateKindSchema,
} from "../../gen/sealflow/v1/sync_pb.ts";
import { newOwner, type RpcCaller } from "./callers.ts";
import type { TestServer } from "./server.ts";

/** A stream that is read message by message. */
export interface Stream extends AsyncDisposable {
  next(): Promise<SyncUpdate>;
  /** The next so many, in words: kind, and entity or id. */
  words(count: number): Promise<string[]>;
  isOver(): Promise<boolean>;
}

export function openStream(
  { sync }: Pick<RpcCaller, "sync">,
  request: MessageInitShape<typeof SubscribeRequestSchema> = {},
): Stream {
  const ending = new AbortController();
  const updates = sync.subscribe(request, { signal: ending.signal })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await updates.next();
    if (done === true) throw new Error("the stream is over");
    return value;
  };
  return {
    next,
    async words(count) {
      const words = [];
      for (let i = 0; i < count; i += 1) words.push(inWords(await next()));
      return words;
    },
    isOver: async () => (await updates.next()).done === true,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await updates.next().catch(() => {});
    },
  };
}

/** An update as its kind and what it is about. */
export function inWords({ kind, record, change }: SyncUpdate): string {
  const about = record?.entityId ?? (change && `${change.id} ${change.status.value ?? "deleted"}`);
  return `${UpdateKindSchema.value[kind]?.localName}${about === undefined ? "" : ` ${about}`}`;
}

/** A device of an owner of its own, that pushes notes. */
export async function newDevice(server: TestServer) {
  const me = await newOwner(server);
  const push = (entityId: string, more: object = {}) =>
    me.ok("POST", "/sync/push", {
      ...{ type: "note", entityId, encryptedData: `data of ${entityId}`, version: "1", ...more },
    });
  return { me, push };
}
