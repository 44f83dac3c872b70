import type { Json } from "../doors/canonical.ts";
import { type Door, openDoor, type Who } from "../doors/doors.ts";
import type { RpcName } from "../doors/rest-calls.ts";
import type { History, Seen } from "./history.ts";
import type { Random } from "./random.ts";

/** What a caller learned of one call: an answer, a refusal, or nothing at all. */
export type Outcome =
  | { readonly ok: Record<string, Json> }
  | { readonly reason: string; readonly details: Record<string, Json> }
  | "unknown";

export interface Timed {
  readonly outcome: Outcome;
  readonly sentMs: number;
  readonly answeredMs: number;
}

/** The server may have done the work, or it may not: the caller asks again. */
const retried = new Set(["", "UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED"]);
/** Longer than the server waits for anything, stops included. */
const callMsMax = 20_000;

/** Calls through every door, and writes down what is seen. */
export class Caller {
  readonly history: History;
  readonly random: Random;
  /** How many service seconds pass in a real one. */
  readonly speed: number;
  readonly #doors: readonly Door[];
  readonly #who: Who;
  readonly #stopped: AbortSignal;

  constructor(options: {
    readonly history: History;
    readonly random: Random;
    readonly speed: number;
    readonly doors: readonly Door[];
    readonly who: Who;
    readonly stopped: AbortSignal;
  }) {
    this.history = options.history;
    this.random = options.random;
    this.speed = options.speed;
    this.#doors = options.doors;
    this.#who = options.who;
    this.#stopped = options.stopped;
  }

  /** Whether the callers' part is over. */
  get isStopped(): boolean {
    return this.#stopped.aborted;
  }

  /** Waits so many service seconds, or until the end. */
  pause(seconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, (seconds * 1000) / this.speed);
    const stop = () => resolve();
    this.#stopped.addEventListener("abort", stop, { once: true });
    return promise.finally(() => {
      clearTimeout(timer);
      this.#stopped.removeEventListener("abort", stop);
    });
  }

  /** One call, through any door. */
  async once(rpc: RpcName, request: Json): Promise<Timed> {
    const door = this.random.pick(this.#doors);
    if (door === undefined) throw new Error("no door");
    const sentMs = performance.now();
    const outcome = await this.#ask(door, rpc, request);
    const answeredMs = performance.now();
    if (outcome !== "unknown" && "reason" in outcome && outcome.reason === "INTERNAL_ERROR") {
      this.history.faults.push(`${rpc} through ${door.name}: INTERNAL_ERROR`);
    }
    return { outcome, sentMs, answeredMs };
  }

  /** Calls until it is answered, or the end; `onTry` is told each outcome. */
  async untilAnswered(
    rpc: RpcName,
    request: Json,
    onTry: (timed: Timed) => void = () => {},
  ): Promise<Timed> {
    for (;;) {
      const timed = await this.once(rpc, request);
      onTry(timed);
      if (timed.outcome !== "unknown" || this.isStopped) return timed;
      await this.pause(this.random.between(0.1, 0.6));
    }
  }

  /** Reads an execution and notes what it is. */
  async look(executionId: string, wait = 0): Promise<Seen | "missing" | undefined> {
    const timed = await this.once("getExecution", { id: executionId, wait });
    if (timed.outcome === "unknown") return undefined;
    if ("ok" in timed.outcome) return this.note(timed.outcome.ok, timed);
    return timed.outcome.reason === "EXECUTION_NOT_FOUND" ? "missing" : undefined;
  }

  /** Notes an execution as an answer shows it. */
  note(execution: Record<string, Json>, { sentMs, answeredMs }: Omit<Timed, "outcome">): Seen {
    const status = String(execution["status"]);
    const seen: Seen = {
      executionId: String(execution["executionId"]),
      status,
      output: tokenOf(execution["output"]),
      error: JSON.stringify(execution["error"] ?? null),
      attempt: Number(execution["attempt"] ?? 0),
      lifeMs: lifeMsOf(execution),
      sentMs,
      answeredMs,
    };
    this.history.seen.push(seen);
    return seen;
  }

  async #ask(door: Door, rpc: RpcName, request: Json): Promise<Outcome> {
    const late = Promise.withResolvers<"unknown">();
    const timer = setTimeout(() => late.resolve("unknown"), callMsMax);
    try {
      const reply = await Promise.race([door.call(this.#who, rpc, request), late.promise]);
      if (reply === "unknown") return reply;
      if ("ok" in reply) return { ok: reply.ok as Record<string, Json> };
      if (retried.has(reply.reason)) return "unknown";
      return { reason: reply.reason, details: reply.details as Record<string, Json> };
    } catch {
      return "unknown";
    } finally {
      clearTimeout(timer);
    }
  }
}

function lifeMsOf({ createdAt, finishedAt }: Record<string, Json>): number | null {
  if (finishedAt === undefined) return null;
  return Date.parse(String(finishedAt)) - Date.parse(String(createdAt));
}

function tokenOf(output: Json | undefined): string {
  if (typeof output !== "object" || output === null || Array.isArray(output)) return "";
  return String(output["token"] ?? "");
}

/** All ways in: what passes the proxy, and gRPC straight. */
export function openDoors(proxyUrl: string, grpcUrl: string): Door[] {
  const address = { httpUrl: proxyUrl, grpcUrl };
  return (["rest", "connect", "grpc"] as const).map((name) => openDoor(name, address));
}
