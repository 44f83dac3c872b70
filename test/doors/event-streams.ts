import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import {
  GoingAwayReason,
  LifecycleChangeSchema,
  type SubscribeRequestSchema,
  type SyncUpdate,
  SyncUpdateSchema,
  UpdateKind,
  UpdateKindSchema,
} from "../../gen/sealflow/v1/sync_pb.ts";
import { wireErrors } from "../../src/calls/wire.ts";
import type { Reason } from "../../src/domain/errors.ts";
import { type Address, agentHeaders, type Body } from "./callers.ts";
import { EventParser, type SentEvent } from "./event-parser.ts";

/** An event with its data read. */
export interface ReadEvent extends SentEvent {
  readonly json: Body;
}

/** An event stream of the server, as a program reads it with fetch. */
export interface EventStream extends AsyncDisposable {
  readonly response: Response;
  /** Undefined once the stream is over. Rejects when it was cut. */
  next(): Promise<ReadEvent | undefined>;
  /** The next so many in words: kind, and entity or id. */
  words(count: number): Promise<string[]>;
  /** All that comes until its end. */
  rest(): Promise<ReadEvent[]>;
  /** All that has come so far, as it came. */
  text(): string;
}

export interface Asking {
  readonly token: string;
  readonly agentId: string;
}

/** Subscribes through REST. `query`: with its question mark, or empty. */
export async function openEvents(
  server: Pick<Address, "httpUrl">,
  { token, agentId }: Asking,
  query = "",
  headers: Record<string, string> = {},
): Promise<EventStream> {
  const leaving = new AbortController();
  const response = await fetch(`${server.httpUrl}/api/v1/sync/subscribe${query}`, {
    headers: { ...agentHeaders(token, agentId), ...headers },
    signal: leaving.signal,
  });
  const chunks: Uint8Array[] = [];
  const events = readEvents(response, chunks);
  const next = async () => {
    const { value } = await events.next();
    return value ?? undefined;
  };
  return {
    response,
    next,
    async words(count) {
      const words = [];
      for (let i = 0; i < count; i += 1) words.push(eventInWords(await next()));
      return words;
    },
    async rest() {
      const all = [];
      for (let event = await next(); event !== undefined; event = await next()) all.push(event);
      return all;
    },
    text: () => Buffer.concat(chunks).toString("utf8"),
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await events.next().catch(() => {});
    },
  };
}

async function* readEvents(
  response: Response,
  chunks: Uint8Array[],
): AsyncGenerator<ReadEvent, void> {
  const parser = new EventParser();
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    for (const event of parser.feed(chunk)) yield { ...event, json: JSON.parse(event.data) };
  }
}

export function eventInWords(read: ReadEvent | undefined): string {
  if (read === undefined) return "the end";
  const { record, change } = read.json;
  const about = record?.entityId ?? change?.id;
  return about === undefined ? read.event : `${read.event} ${about}`;
}

/** The messages of an event stream, as the other doors would have sent them. */
export async function* restUpdates(
  server: Address,
  who: Asking,
  request: MessageInitShape<typeof SubscribeRequestSchema>,
): AsyncGenerator<SyncUpdate> {
  await using stream = await openEvents(server, who, queryOf(request));
  if (!stream.response.ok) throw failureOf(await stream.response.json());
  for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
    if (event.event === "error") throw failureOf(event.json);
    yield toUpdate(event.json);
  }
}

function queryOf(request: MessageInitShape<typeof SubscribeRequestSchema>): string {
  const { since, kinds = [], types = [], entityIds = [], excludeOwn, heartbeat } = request;
  const query = new URLSearchParams();
  if (since !== undefined) query.set("since", String(since));
  for (const kind of kinds) query.append("kinds", wordOf(kind));
  for (const type of types) query.append("types", type);
  for (const id of entityIds) query.append("entityIds", id);
  if (excludeOwn !== undefined) query.set("excludeOwn", String(excludeOwn));
  if (heartbeat !== undefined) {
    query.set("heartbeat", `${Number(heartbeat.seconds ?? 0) + (heartbeat.nanos ?? 0) / 1e9}s`);
  }
  return `?${query}`;
}

function wordOf(kind: UpdateKind): string {
  return UpdateKindSchema.value[kind]?.localName.toLowerCase() ?? "none";
}

function toUpdate({ kind, record, change, cursor, prevCursor, epoch, reason }: Body): SyncUpdate {
  return create(SyncUpdateSchema, {
    kind: UpdateKind[kind.toUpperCase() as keyof typeof UpdateKind],
    record: record && { ...record, ...timesOf(record), revision: BigInt(record.revision) },
    change: change && toChange(change),
    cursor: BigInt(cursor),
    prevCursor: BigInt(prevCursor),
    epoch: epoch ?? "",
    reason:
      GoingAwayReason[(reason ?? "unspecified").toUpperCase() as keyof typeof GoingAwayReason],
  });
}

function timesOf({ cursor, createdAt, updatedAt }: Body) {
  return {
    cursor: BigInt(cursor),
    createdAt: timestampFromDate(new Date(createdAt)),
    updatedAt: timestampFromDate(new Date(updatedAt)),
  };
}

/** One number for each word of a status, as the contract has it. */
const statusNumbers = {
  workflow: ["pending", "running", "completed", "failed"],
  execution: ["pending", "running", "completed", "failed", "cancelled", "timed_out"],
  agent: ["active", "inactive"],
};

function toChange({ kind, status, time, ...rest }: Body) {
  const words: readonly string[] = statusNumbers[kind as keyof typeof statusNumbers];
  const value = words.indexOf(status) + 1;
  return create(LifecycleChangeSchema, {
    ...rest,
    kind: UpdateKind[kind.toUpperCase() as keyof typeof UpdateKind],
    time: timestampFromDate(new Date(time)),
    ...(status === undefined ? {} : { status: { case: `${kind}Status`, value } }),
  });
}

function failureOf({ error }: Body): ConnectError {
  const { code, message, details } = error;
  const value = { reason: code, metadata: details };
  const known = wireErrors[code as Reason];
  return new ConnectError(message, known.code, {}, [{ desc: ErrorInfoSchema, value }]);
}
