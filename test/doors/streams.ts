import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type SubscribeRequestSchema,
  type SyncUpdate,
  UpdateKindSchema,
} from "../../gen/sealflow/v1/sync_pb.ts";
import { type Address, newOwner, type RpcCaller, rpcCaller, wires } from "./callers.ts";
import { type Asking, restUpdates } from "./event-streams.ts";
import type { TestServer } from "./server.ts";

/** A stream that is read message by message. */
export interface Stream extends AsyncDisposable {
  next(): Promise<SyncUpdate>;
  /** The next so many, in words: kind, and entity or id. */
  words(count: number): Promise<string[]>;
  isOver(): Promise<boolean>;
}

/** The ways to subscribe. */
export const ways = [...wires, "rest"] as const;
export type Way = (typeof ways)[number];

type Request = MessageInitShape<typeof SubscribeRequestSchema>;

/** Subscribes one way or another; what comes is the same. */
export function openWay(server: Address, who: Asking, request: Request, way: Way): Stream {
  if (way !== "rest") return openStream(rpcCaller(server, who, way), request);
  const updates = restUpdates(server, who, request);
  return streamOf(updates, async () => {
    await updates.return(undefined);
  });
}

export function openStream({ sync }: Pick<RpcCaller, "sync">, request: Request = {}): Stream {
  const ending = new AbortController();
  const updates = sync.subscribe(request, { signal: ending.signal })[Symbol.asyncIterator]();
  return streamOf(updates, async () => {
    ending.abort();
    await updates.next().catch(() => {});
  });
}

function streamOf(updates: AsyncIterator<SyncUpdate>, leave: () => Promise<void>): Stream {
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
    [Symbol.asyncDispose]: leave,
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
