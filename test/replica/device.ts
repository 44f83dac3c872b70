import {
  type Conflict,
  connect,
  memoryStorage,
  openReplica,
  type ReplicaEvent,
  type ReplicaOptions,
  type ReplicaStorage,
  type Resolution,
  type StateReplica,
  type TokenSource,
} from "../../src/client/client.ts";
import type { TestServer } from "../doors/server.ts";

/** A program on a device that has a replica, and the line between it and the server. */
export interface Device extends AsyncDisposable {
  readonly replica: StateReplica<string>;
  /** Oldest first. */
  readonly events: ReplicaEvent<string>[];
  readonly storage: ReplicaStorage;
  readonly line: Line;
  /** The next event of a kind that was not waited for yet. */
  next<Kind extends ReplicaEvent["kind"]>(
    kind: Kind,
  ): Promise<Extract<ReplicaEvent<string>, { readonly kind: Kind }>>;
  /** Every record by `type/entityId`, as `version data`, ` pending` if it is. */
  content(): Promise<Record<string, string>>;
}

type Settings = Partial<Omit<ReplicaOptions<string>, "sync">> & {
  readonly server: Pick<TestServer, "httpUrl" | "token">;
  readonly id: string;
  /** Default "me". */
  readonly sub?: string;
  /** Default: a new one for each call. */
  readonly token?: TokenSource;
  /** Default true. */
  readonly isStarted?: boolean;
};

const somewhere = "http://server.test";

export async function openDevice({
  server,
  id,
  sub = "me",
  token,
  isStarted = true,
  ...options
}: Settings): Promise<Device> {
  const events = new EventLog();
  const storage = options.storage ?? memoryStorage();
  const line = new Line(server);
  const sealflow = connect(somewhere, {
    token: token ?? (() => server.token({ sub })),
    agentId: id,
    fetch: line.fetch,
  });
  const replica = await openReplica<string>({
    sync: sealflow.sync,
    onConflict: noConflict,
    random: () => 0.1,
    ...options,
    storage,
    onEvent: (event) => events.add(event),
  });
  if (isStarted) replica.start();
  return {
    ...{ replica, storage, line, events: events.all },
    next: (kind) => events.next(kind),
    content: () => contentOf(replica),
    [Symbol.asyncDispose]: () => replica.close(),
  };
}

function noConflict({ local }: Conflict<string>): Resolution<string> {
  throw new Error(`an unexpected conflict of ${local.entityId}`);
}

export async function contentOf(replica: StateReplica<string>): Promise<Record<string, string>> {
  const records = await replica.list();
  const lines = records.map(({ type, entityId, version, data, isPending }) => [
    `${type}/${entityId}`,
    `${version} ${data}${isPending ? " pending" : ""}`,
  ]);
  return Object.fromEntries(lines.sort());
}

class EventLog {
  readonly all: ReplicaEvent<string>[] = [];
  readonly #seen = new Map<string, number>();
  #wake: (() => void)[] = [];

  add(event: ReplicaEvent<string>): void {
    this.all.push(event);
    for (const wake of this.#wake.splice(0)) wake();
  }

  async next<Kind extends ReplicaEvent["kind"]>(
    kind: Kind,
  ): Promise<Extract<ReplicaEvent<string>, { readonly kind: Kind }>> {
    const index = this.#seen.get(kind) ?? 0;
    this.#seen.set(kind, index + 1);
    for (;;) {
      const found = this.all.filter((event) => event.kind === kind)[index];
      if (found !== undefined && isOf(found, kind)) return found;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }
}

function isOf<Kind extends string, Event extends { readonly kind: string }>(
  event: Event,
  kind: Kind,
): event is Extract<Event, { readonly kind: Kind }> {
  return event.kind === kind;
}

/** The network of one device. It finds the server wherever that is now. */
export class Line {
  /** The paths of all calls, oldest first. */
  readonly calls: string[] = [];
  readonly #server: Pick<TestServer, "httpUrl">;
  #cut = new AbortController();
  #answersToLose = 0;
  #isCut = false;

  constructor(server: Pick<TestServer, "httpUrl">) {
    this.#server = server;
  }

  /** What is under way fails, and all that follows. */
  cut(): void {
    this.#isCut = true;
    this.#cut.abort(new TypeError("the line is cut"));
    this.#cut = new AbortController();
  }

  mend(): void {
    this.#isCut = false;
  }

  /** The server does what the next pushes ask, but its answers get lost. */
  loseAnswersToPushes(count: number): void {
    this.#answersToLose = count;
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    if (this.#isCut) throw new TypeError("the line is cut");
    const path = String(input).slice(somewhere.length);
    this.calls.push(path);
    const own = init?.signal ?? new AbortController().signal;
    const signal = AbortSignal.any([own, this.#cut.signal]);
    const response = await fetch(this.#server.httpUrl + path, { ...init, signal });
    if (this.#answersToLose > 0 && path.endsWith("/PushState")) {
      this.#answersToLose -= 1;
      await response.arrayBuffer();
      throw new TypeError("the answer got lost");
    }
    return response;
  };
}
