import type { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import {
  type HeartbeatTasksRequest,
  type PollTasksRequest,
  TaskHeartbeatStatus,
} from "../../gen/sealflow/v1/task_pb.ts";
import { limits, spans } from "../domain/limits.ts";
import type { Grants, Heartbeat, HeartbeatResult } from "../storage/port.ts";
import type { Call, Handlers, ServiceParts } from "./call.ts";
import { jsonOf, waitMs } from "./execute.ts";
import { fromDuration, toDuration, toTask } from "./messages.ts";
import { type Waiter, withWaiter } from "./wait.ts";

/** Between two looks of one poll, when another poll was faster. */
const lookPauseMs = 10;

export type TaskHandlers = Pick<
  Handlers<typeof AgentService>,
  "pollTasks" | "heartbeatTasks" | "completeTask" | "failTask" | "releaseTask"
>;

/** How agents take and report work. The caller is the agent of `x-agent-id`. */
export function taskHandlers(parts: ServiceParts): TaskHandlers {
  const { store, wakeups } = parts;
  return {
    async pollTasks(request, call) {
      const { tasks } = await withWaiter(call, (waiter) => poll(parts, { call, request, waiter }));
      return { tasks: tasks.map(toTask) };
    },

    async heartbeatTasks(request, call) {
      const results = await withWaiter(call, (waiter) =>
        heartbeat(parts, { call, request, waiter }),
      );
      return {
        results: results.map(({ taskId, status, leaseLeftUs }) => ({
          taskId,
          status: heartbeatStatuses[status],
          ...(status === "lease_lost" ? {} : { leaseLeft: toDuration(leaseLeftUs) }),
        })),
      };
    },

    async completeTask({ taskId, leaseToken, output }, call) {
      const report = { taskId, leaseToken, output: jsonOf("output", output) };
      const { touched } = await store.tasks.completeTask(agentOf(call), report);
      wakeups.announce(touched);
      return {};
    },

    async failTask({ taskId, leaseToken, error, retryable, retryAfter }, call) {
      const retryAfterUs = fromDuration(retryAfter, spans.timeoutMaxUs);
      const { touched } = await store.tasks.failTask(agentOf(call), {
        taskId,
        leaseToken,
        random: parts.random(),
        failure: {
          code: error?.code === undefined || error.code === "" ? "AGENT_ERROR" : error.code,
          message: error?.message ?? "",
          retryable: retryable ?? true,
          ...(retryAfterUs === undefined ? {} : { retryAfterUs }),
        },
      });
      wakeups.announce(touched);
      return {};
    },

    async releaseTask({ taskId, leaseToken }, call) {
      const { touched } = await store.tasks.releaseTask(agentOf(call), { taskId, leaseToken });
      wakeups.announce(touched);
      return {};
    },
  };
}

interface Waiting<Request> {
  readonly call: Call;
  readonly request: Request;
  readonly waiter: Waiter;
}

function agentOf({ owner, agentId }: Call) {
  return { owner, id: agentId };
}

/** Looks, and while there is nothing waits to be woken and looks again. */
async function poll(
  parts: ServiceParts,
  { call, request, waiter }: Waiting<PollTasksRequest>,
): Promise<Grants> {
  const waitUntil = performance.now() + pollWaitMs(call, request);
  let isOver = false;
  waiter.onAbort(parts.stopping);
  const open = {
    owner: call.owner,
    agentId: call.agentId,
    pollId: request.pollId,
    wake: waiter.wake,
    end: () => {
      isOver = true;
      waiter.wake();
    },
  };
  const isGone = () => isOver || call.signal.aborted || parts.stopping.aborted;
  const place = parts.wakeups.polls.join(open);
  let grants: Grants = { tasks: [], capabilities: [], nextDueUs: null };
  try {
    while (!isGone()) {
      place.looking();
      grants = await look(parts, call, { request, isGone });
      place.looked(new Set(grants.capabilities), grants.tasks.length > 0);
      if (grants.tasks.length > 0) break;
      const leftMs = waitUntil - performance.now();
      const hasNews = await waiter.wait(Math.min(leftMs, untilDueMs(parts, grants)));
      if (!hasNews && performance.now() >= waitUntil) break;
    }
  } finally {
    place.leave();
  }
  return grants;
}

async function look(
  { store, wakeups }: ServiceParts,
  call: Call,
  { request, isGone }: { readonly request: PollTasksRequest; isGone(): boolean },
): Promise<Grants> {
  const { result, touched } = await store.tasks.grantTasks(agentOf(call), {
    pollId: request.pollId,
    max: Math.min(request.maxTasks ?? 1, limits.tasksPerPollMax),
    leaseUs: fromDuration(request.lease, spans.leaseMaxUs) ?? spans.leaseUs,
    isGone,
  });
  wakeups.announce(touched);
  return result;
}

function pollWaitMs(call: Call, { wait }: PollTasksRequest): number {
  const asked = waitMs(wait, spans.pollWaitMaxMs) ?? spans.pollWaitMs;
  return Math.min(asked, (call.timeLeftMs() ?? Infinity) - spans.deadlineMarginMs);
}

/** How long until something that waits for its next attempt is due; a pause at least. */
function untilDueMs({ clock }: ServiceParts, { nextDueUs }: Grants): number {
  if (nextDueUs === null) return Infinity;
  return Math.max(lookPauseMs, Math.ceil((nextDueUs - clock.steadyUs()) / 1000));
}

/** Extends the leases, then waits for a cancel or the end of an attempt, if that was asked for. */
async function heartbeat(
  parts: ServiceParts,
  { call, request, waiter }: Waiting<HeartbeatTasksRequest>,
): Promise<readonly HeartbeatResult[]> {
  const beats = request.tasks.map(toBeat);
  waiter.onAbort(parts.stopping);
  for (const { taskId } of beats) {
    waiter.with(parts.wakeups.executions.listen(taskId, waiter.wake));
  }
  let latest = await beat(parts, call, beats);
  let beatMs = performance.now();
  const waitUntil = beatMs + heartbeatWaitMs(call, { request, results: latest });
  while (latest.every(({ status }) => status === "ok") && !parts.stopping.aborted) {
    const hasNews = await waiter.wait(waitUntil - performance.now());
    if (!hasNews || call.signal.aborted) break;
    // Without progress: it is stored already.
    latest = await beat(parts, call, beats.map(withoutProgress));
    beatMs = performance.now();
  }
  const waitedMs = Math.floor(performance.now() - beatMs);
  return latest.map((result) => sinceThen(result, waitedMs));
}

/** The wait has used up some of the lease. */
function sinceThen({ taskId, status, leaseLeftUs }: HeartbeatResult, ms: number): HeartbeatResult {
  return { taskId, status, leaseLeftUs: Math.max(0, leaseLeftUs - ms * 1000) };
}

async function beat(
  { store, wakeups }: ServiceParts,
  call: Call,
  beats: readonly Heartbeat[],
): Promise<readonly HeartbeatResult[]> {
  const { result, touched } = await store.tasks.heartbeatTasks(agentOf(call), beats);
  wakeups.announce(touched);
  return result;
}

function toBeat({ taskId, leaseToken, lease, progress }: HeartbeatTasksRequest["tasks"][number]) {
  const leaseUs = fromDuration(lease, spans.leaseMaxUs);
  return {
    taskId,
    leaseToken,
    ...(leaseUs === undefined ? {} : { leaseUs }),
    ...(progress === undefined ? {} : { progress }),
  };
}

function withoutProgress({ taskId, leaseToken, leaseUs }: Heartbeat): Heartbeat {
  return { taskId, leaseToken, ...(leaseUs === undefined ? {} : { leaseUs }) };
}

/** Cut to half the shortest lease, so that the next heartbeat comes in time. */
function heartbeatWaitMs(
  call: Call,
  asked: { request: HeartbeatTasksRequest; results: readonly HeartbeatResult[] },
): number {
  const leasesMs = asked.results.map(({ leaseLeftUs }) => leaseLeftUs / 1000);
  return Math.min(
    waitMs(asked.request.wait, spans.heartbeatWaitMaxMs) ?? 0,
    Math.min(...leasesMs) / 2,
    (call.timeLeftMs() ?? Infinity) - spans.deadlineMarginMs,
  );
}

const heartbeatStatuses = {
  ok: TaskHeartbeatStatus.OK,
  cancel_requested: TaskHeartbeatStatus.CANCEL_REQUESTED,
  lease_lost: TaskHeartbeatStatus.LEASE_LOST,
} as const satisfies Record<HeartbeatResult["status"], TaskHeartbeatStatus>;
