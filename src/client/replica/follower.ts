import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { GoingAwayReason, type SyncUpdate, UpdateKind } from "../../../gen/sealflow/v1/sync_pb.ts";
import { reasonOf } from "../error-reason.ts";
import { takeUp } from "./incoming.ts";
import { checkProgress, pullAnew } from "./recovery.ts";
import { ReplicaError } from "./replica-error.ts";
import type { ReplicaParts } from "./replica-parts.ts";
import { settledBatches } from "./settled-batches.ts";

const answerMaxMs = 60_000;
const heartbeatMs = 15_000;
/** A stream that says nothing for so long is dead. */
const silenceMaxMs = 3 * heartbeatMs;
const batchMax = 500;

/**
 * Pulls until nothing is left. When the server has another history than the replica, or has not
 * come as far, it pulls all of it first, at most once.
 */
export async function pullToHead(parts: ReplicaParts, signal: AbortSignal): Promise<void> {
  const { sync, state } = parts;
  for (let hasRecovered = false; ; ) {
    const { cursor, epoch } = state.position;
    const page = await sync
      .pullState({ since: BigInt(cursor) }, { signal, timeoutMs: answerMaxMs })
      .catch((error: unknown) => {
        if (reasonOf(error)?.reason === "SYNC_CURSOR_AHEAD") return undefined;
        throw error;
      });
    const isOther = page === undefined || (epoch !== "" && page.epoch !== epoch);
    if (isOther) {
      if (hasRecovered) throw epochChanged();
      await pullAnew(parts, signal);
      hasRecovered = true;
      continue;
    }
    checkProgress(page, BigInt(cursor));
    await takeUp(parts, page.records, { cursor: Number(page.cursor), epoch: page.epoch });
    if (!page.hasMore) return;
  }
}

/** Takes up what the server streams from the replica's cursor on, until the stream ends. */
export async function follow(parts: ReplicaParts, signal: AbortSignal): Promise<void> {
  const { sync, state } = parts;
  const silence = new Silence(signal);
  const { cursor } = state.position;
  const request = { since: BigInt(cursor), heartbeat: durationFromMs(heartbeatMs) };
  const stream = sync.subscribe(request, { signal: silence.signal });
  let sent = cursor;
  try {
    for await (const updates of settledBatches(stream, batchMax)) {
      silence.end();
      for (const update of updates) {
        if (Number(update.prevCursor) !== sent) {
          throw new ReplicaError("FEED_GAP", `The feed skipped something after ${sent}`);
        }
        sent = Number(update.cursor);
        if (update.kind === UpdateKind.READY) begin(parts, update);
      }
      const records = updates.flatMap(({ record }) => record ?? []);
      await takeUp(parts, records, { ...state.position, cursor: sent });
      for (const update of updates) tell(parts, update);
      silence.begin();
    }
  } catch (error) {
    throw silence.isOver ? new ReplicaError("SERVER_SILENT", "The server fell silent") : error;
  } finally {
    silence.end();
  }
}

function begin({ state, emit }: ReplicaParts, { epoch }: SyncUpdate): void {
  if (epoch !== state.position.epoch) throw epochChanged();
  emit({ kind: "online" });
}

/** Once all that came before is taken up. */
function tell({ emit }: ReplicaParts, { kind, reason }: SyncUpdate): void {
  if (kind === UpdateKind.UP_TO_DATE) emit({ kind: "upToDate" });
  if (kind === UpdateKind.GOING_AWAY) {
    throw new ConnectError(
      `The server ends the stream: ${goingAway.get(reason) ?? "no reason"}`,
      Code.Unavailable,
    );
  }
}

const goingAway: ReadonlyMap<number, string> = new Map([
  [GoingAwayReason.STOPPING, "it stops"],
  [GoingAwayReason.TOKEN_EXPIRED, "the token has expired"],
  [GoingAwayReason.TOKEN_REVOKED, "the token was revoked"],
]);

function epochChanged(): ReplicaError {
  return new ReplicaError("EPOCH_CHANGED", "The server has begun another history");
}

/** Aborts its signal when nothing ends the silence in time. */
class Silence {
  readonly #controller = new AbortController();
  readonly signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal) {
    this.signal = AbortSignal.any([outer, this.#controller.signal]);
    this.begin();
  }

  get isOver(): boolean {
    return this.#controller.signal.aborted;
  }

  begin(): void {
    this.end();
    this.#timer = setTimeout(() => this.#controller.abort(), silenceMaxMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
