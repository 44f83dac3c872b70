import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  createRouterTransport,
  type ServiceImpl,
  type Transport,
} from "@connectrpc/connect";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { AgentService, type RegisterAgentRequest } from "../gen/sealflow/v1/agent_pb.ts";
import {
  type CompleteTaskRequest,
  type FailTaskRequest,
  type HeartbeatTasksRequest,
  type PollTasksRequest,
  type ReleaseTaskRequest,
  type TaskHeartbeat,
  TaskHeartbeatStatus,
  type TaskSchema,
} from "../gen/sealflow/v1/task_pb.ts";

type Rpc = "register" | "poll" | "heartbeat" | "complete" | "fail" | "release";
type TaskInit = MessageInitShape<typeof TaskSchema>;

/** An error as the service words it. */
export function refusal(code: Code, reason: string): ConnectError {
  const value = create(ErrorInfoSchema, { reason, domain: "sealflow" });
  return new ConnectError(reason, code, {}, [{ desc: ErrorInfoSchema, value }]);
}

/**
 * The worker rpcs of a server at the border of the agent runtime: grants what a test offers, keeps
 * what the agent says, and fails as it is told to.
 */
export class FakeAgentService {
  readonly transport: Transport;
  leaseMs = 30_000;
  isRegistered = false;
  readonly registrations: RegisterAgentRequest[] = [];
  readonly polls: PollTasksRequest[] = [];
  readonly beats: TaskHeartbeat[] = [];
  readonly completed: CompleteTaskRequest[] = [];
  readonly failed: FailTaskRequest[] = [];
  readonly released: ReleaseTaskRequest[] = [];
  readonly progress = new Map<string, string>();

  readonly #queue: TaskInit[] = [];
  readonly #granted = new Map<string, TaskInit[]>();
  readonly #statuses = new Map<string, TaskHeartbeatStatus>();
  readonly #failures = new Map<Rpc, ConnectError[]>();
  #lostPollAnswers = 0;
  #changed = Promise.withResolvers<void>();

  constructor() {
    this.transport = createRouterTransport(({ service }) =>
      service(AgentService, this.#handlers()),
    );
  }

  /** Queues a task; its id is its lease token too. */
  offer(task: TaskInit & { id: string }): void {
    this.#queue.push({ attempt: 1, input: "{}", leaseToken: `${task.id}-token`, ...task });
    this.#change();
  }

  cancel(id: string): void {
    this.#statuses.set(id, TaskHeartbeatStatus.CANCEL_REQUESTED);
    this.#change();
  }

  endLease(id: string): void {
    this.#statuses.set(id, TaskHeartbeatStatus.LEASE_LOST);
    this.#change();
  }

  /** The next calls of this rpc fail so, one after the other. */
  failNext(rpc: Rpc, ...errors: ConnectError[]): void {
    this.#failures.set(rpc, [...(this.#failures.get(rpc) ?? []), ...errors]);
  }

  /** The next poll grants, and its answer is lost. */
  loseNextPollAnswer(): void {
    this.#lostPollAnswers += 1;
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  #meet(rpc: Rpc): void {
    const error = this.#failures.get(rpc)?.shift();
    if (error !== undefined) throw error;
    if (rpc !== "register" && !this.isRegistered) {
      throw refusal(Code.NotFound, "AGENT_NOT_FOUND");
    }
  }

  async #whenChanged(ms: number, signal: AbortSignal): Promise<void> {
    const ended = Promise.withResolvers<void>();
    const timer = setTimeout(ended.resolve, ms);
    signal.addEventListener("abort", () => ended.resolve());
    await Promise.race([this.#changed.promise, ended.promise]);
    clearTimeout(timer);
  }

  async #poll(request: PollTasksRequest, signal: AbortSignal) {
    this.polls.push(request);
    this.#meet("poll");
    const held = this.#granted.get(request.pollId) ?? [];
    while (held.length === 0 && this.#queue.length === 0 && !signal.aborted) {
      await this.#whenChanged(30_000, signal);
      this.#meet("poll");
    }
    const fresh = held.length > 0 ? held : this.#queue.splice(0, request.maxTasks ?? 1);
    this.#granted.set(request.pollId, fresh);
    if (this.#lostPollAnswers > 0) {
      this.#lostPollAnswers -= 1;
      throw new ConnectError("the connection broke", Code.Unavailable);
    }
    return { tasks: fresh.map((task) => ({ lease: durationFromMs(this.leaseMs), ...task })) };
  }

  async #heartbeat(request: HeartbeatTasksRequest, signal: AbortSignal) {
    this.#meet("heartbeat");
    const { tasks, wait } = request;
    this.beats.push(...tasks);
    for (const { taskId, progress } of tasks) {
      if (progress !== undefined) this.progress.set(taskId, progress);
    }
    const isNews = tasks.some(({ taskId }) => this.#statuses.has(taskId));
    if (wait !== undefined && !isNews) await this.#whenChanged(durationMs(wait), signal);
    return {
      results: tasks.map(({ taskId }) => ({
        taskId,
        status: this.#statuses.get(taskId) ?? TaskHeartbeatStatus.OK,
        leaseLeft: durationFromMs(this.leaseMs),
      })),
    };
  }

  #handlers(): Partial<ServiceImpl<typeof AgentService>> {
    return {
      registerAgent: (request) => {
        this.#meet("register");
        this.isRegistered = true;
        this.registrations.push(request);
        return {};
      },
      pollTasks: (request, { signal }) => this.#poll(request, signal),
      heartbeatTasks: (request, { signal }) => this.#heartbeat(request, signal),
      completeTask: (request) => {
        this.#meet("complete");
        this.completed.push(request);
        return {};
      },
      failTask: (request) => {
        this.#meet("fail");
        this.failed.push(request);
        return {};
      },
      releaseTask: (request) => {
        this.#meet("release");
        this.released.push(request);
        return {};
      },
    };
  }
}
