/**
 * The promises of a store. Each method is one transaction and writes the rows of one owner; another
 * owner's row does not exist. Only prune, retireAgents, sweepTasks and restoreLeases, which the
 * server calls for itself, go through all owners. What a method answers is durable. A write tells
 * what it touched, for the caller to announce after the commit. Any method throws UNAVAILABLE when
 * the store is locked, full or failing; each sentence here is a test of the suite that every store
 * passes.
 */
import type { Agent, AgentName, AgentStatus } from "../domain/agent.ts";
import type { Execution, Task, TaskFailure } from "../domain/execution.ts";
import type { ChangeKind, FeedItem, PushOutcome, RecordDraft } from "../domain/record.ts";
import type { Workflow, WorkflowStatus } from "../domain/workflow.ts";

export interface Store extends AsyncDisposable {
  readonly workflows: WorkflowStore;
  readonly agents: AgentStore;
  readonly executions: ExecutionStore;
  readonly tasks: TaskStore;
  readonly records: RecordStore;
  readonly clients: ClientStore;
  /** Names this history of the store; a restored backup draws a new one. */
  readonly epoch: string;
  /** An HMAC under the server's key: tells equal content without keeping it. */
  fingerprint(content: string): string;
  /** Whether a write is possible now; false once the store has failed for good. */
  isWritable(): boolean;
  /**
   * Resolves with the cause when the store has failed for good: what was being written then may be
   * stored or not, and only a new start finds out.
   */
  readonly failed: Promise<unknown>;
  /**
   * Deletes what nobody can ask for any more, at most `limit` rows of each kind: mutation ids after
   * 7 days, deleted workflows and swept executions 30 days after their end. Tells whether more is
   * left.
   */
  prune(limit: number): Promise<{ readonly hasMore: boolean }>;
}

/** What a write touched: announced after the commit, without data. */
export interface Touched {
  /** Owners whose feed moved on. */
  readonly feeds: readonly string[];
  /** Lines in which an execution now waits, and from when on it may be granted (steady clock). */
  readonly queued: readonly QueueLine[];
  /** Executions that ended, are to be cancelled, or whose attempt is over. */
  readonly executions: readonly string[];
}

/** A line of waiting executions; `owner` is that of the agents that may take from it. */
export interface QueueLine {
  readonly owner: string;
  readonly route: string;
  readonly dueUs: number;
}

export interface Change<T> {
  readonly result: T;
  readonly touched: Touched;
}

/** A request_id and what it stands for: the fingerprint of the request's content. */
export interface RequestKey {
  readonly id: string;
  readonly fingerprint: string;
}

/** The place after which a page begins: the last item of the page before. */
export interface PageKey {
  readonly createdUs: number;
  readonly id: string;
}

export interface Page<T> {
  /** Newest first. */
  readonly items: readonly T[];
  /** How many match on all pages; kept as a counter, not counted. */
  readonly total: number;
  readonly hasMore: boolean;
}

export interface WorkflowStore {
  /**
   * Makes a draft. The same request key again answers the workflow made first, `replayed`, in its
   * present state. Throws AGENT_NOT_FOUND for a named agent that does not exist, VALIDATION_ERROR
   * for another owner's without `allowPublic`, IDEMPOTENCY_CONFLICT for a key with other content,
   * WORKFLOW_NOT_FOUND when the workflow made first was deleted.
   */
  createWorkflow(
    owner: string,
    draft: WorkflowDraft,
  ): Promise<Change<{ readonly workflow: Workflow; readonly replayed: boolean }>>;
  /** The workflow with its payload. Throws WORKFLOW_NOT_FOUND. */
  getWorkflow(owner: string, id: string): Promise<Workflow>;
  /** A page without payloads. */
  listWorkflows(owner: string, query: WorkflowQuery): Promise<Page<Workflow>>;
  /**
   * Changes what is given. Throws WORKFLOW_NOT_FOUND, WORKFLOW_ACTIVE while an execution has not
   * ended, AGENT_NOT_FOUND and VALIDATION_ERROR as createWorkflow.
   */
  updateWorkflow(owner: string, id: string, changes: WorkflowChanges): Promise<Change<Workflow>>;
  /**
   * Deletes the workflow, erases its payload and key, ends its active executions as cancelled. What
   * is erased is overwritten; a log of the file may hold it until the log is next written over.
   * Throws WORKFLOW_NOT_FOUND, also the second time.
   */
  deleteWorkflow(owner: string, id: string): Promise<Change<void>>;
}

export interface WorkflowDraft {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly encryptedData: string;
  /** Empty: none. Sealed at rest, and never in an answer of this port but a granted Task. */
  readonly encryptionKey: string;
  /** Empty: any agent with the capabilities. */
  readonly agentId: string;
  readonly allowPublic: boolean;
  /** A sorted set. */
  readonly requiredCapabilities: readonly string[];
  readonly request?: RequestKey;
}

export interface WorkflowQuery {
  readonly status?: WorkflowStatus;
  readonly limit: number;
  readonly after?: PageKey;
}

export interface WorkflowChanges {
  readonly name?: string;
  readonly description?: string;
  readonly encryptedData?: string;
  readonly encryptionKey?: string;
  readonly agentId?: string;
  readonly allowPublic?: boolean;
  readonly requiredCapabilities?: readonly string[];
}

export interface AgentStore {
  /**
   * Registers an agent or replaces its whole registration, and makes it active. Throws
   * AGENT_ID_TAKEN when it is to be public and another owner's public agent has the id.
   */
  registerAgent(
    owner: string,
    registration: Registration,
  ): Promise<Change<{ readonly agent: Agent; readonly created: boolean }>>;
  /** The own agent of that id, else the public one. Throws AGENT_NOT_FOUND. */
  getAgent(owner: string, id: string): Promise<Agent>;
  /** Own agents, then public ones whose id is not also an own one; each part newest first. */
  listAgents(owner: string, query: AgentQuery): Promise<Page<Agent>>;
  /**
   * Removes an own agent: its leases count as lost, its id stays its owner's. Throws
   * AGENT_NOT_FOUND, also the second time.
   */
  deregisterAgent(owner: string, id: string): Promise<Change<void>>;
  /** Writes a sign of life; an inactive agent is active again. Does nothing for an unknown one. */
  touchAgent(owner: string, id: string): Promise<Change<void>>;
  /** Makes agents inactive that were last seen before `seenBeforeUs` (wall clock); at most 100. */
  retireAgents(seenBeforeUs: number): Promise<Change<{ readonly hasMore: boolean }>>;
  /** Registered agents of the owner that hold a lease now. */
  listHolders(owner: string): Promise<readonly Agent[]>;
}

export interface Registration {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  /** A sorted set. */
  readonly capabilities: readonly string[];
  readonly isPublic: boolean;
}

export interface AgentQuery {
  readonly status?: AgentStatus;
  readonly limit: number;
  /** `isOwn` says in which part the last item of the page before stood. */
  readonly after?: PageKey & { readonly isOwn: boolean };
}

export interface ExecutionStore {
  /**
   * Queues an execution. The same request key again answers the first one, `replayed`, as it is
   * now. Throws WORKFLOW_NOT_FOUND, AGENT_NOT_FOUND, VALIDATION_ERROR (another agent than the
   * workflow's; another owner's agent for a workflow, allowed neither by it nor by the call),
   * IDEMPOTENCY_CONFLICT, QUEUE_FULL (10,000 queued executions or 256 sets of capabilities).
   */
  createExecution(
    owner: string,
    draft: ExecutionDraft,
  ): Promise<
    Change<{ readonly execution: Execution; readonly line: QueueLine; readonly replayed: boolean }>
  >;
  /** The execution with output, progress and key releases. Throws EXECUTION_NOT_FOUND. */
  getExecution(owner: string, id: string): Promise<Execution>;
  /** Where an execution waits, for explaining it; null once it has ended. */
  getLine(owner: string, id: string): Promise<QueueLine | null>;
  /** A page without output, progress and key releases. Throws WORKFLOW_NOT_FOUND. */
  listExecutions(
    owner: string,
    query: { readonly workflowId: string; readonly limit: number; readonly after?: PageKey },
  ): Promise<Page<Execution>>;
  /**
   * Ends an execution that nobody holds as cancelled; asks the agent that holds it to stop, within
   * 10 s. Changes nothing on one that has ended or was asked before. Throws EXECUTION_NOT_FOUND.
   */
  cancelExecution(owner: string, id: string): Promise<Change<Execution>>;
}

export interface ExecutionDraft {
  readonly id: string;
  /** What is run: a workflow, or the agent named by `agentId` itself. */
  readonly workflowId: string | null;
  /** The agent named by the call; empty: the workflow's own choice. */
  readonly agentId: string;
  readonly allowPublic: boolean;
  /** JSON text. */
  readonly input: string;
  readonly timeoutUs: number;
  readonly startTimeoutUs: number;
  readonly maxAttempts: number;
  readonly atMostOnce: boolean;
  readonly request?: RequestKey;
}

/** The side of the agents. Every method throws AGENT_NOT_FOUND for an unregistered caller. */
export interface TaskStore {
  /**
   * Grants up to `max` queued executions of one owner, oldest due first, among those the agent may
   * take: its own line, and those whose capabilities it covers. Each grant is a lease with a new
   * token, and records the release of the workflow's key. With a `pollId`, the grants of that poll
   * which the agent still holds are answered instead, if there are any. Nothing is granted when
   * `isGone` says that the caller has left.
   */
  grantTasks(agent: AgentName, poll: Poll): Promise<Change<Grants>>;
  /**
   * Extends leases and stores progress, one result a task. A lease that ran out is taken up again
   * while nobody else was granted the task.
   */
  heartbeatTasks(
    agent: AgentName,
    beats: readonly Heartbeat[],
  ): Promise<Change<readonly HeartbeatResult[]>>;
  /**
   * Ends the execution as completed. Also after the lease ran out, while nobody else was granted
   * it. The same token and verb again changes nothing. Throws TASK_NOT_FOUND, LEASE_LOST.
   */
  completeTask(
    agent: AgentName,
    report: TaskReport & { readonly output: string },
  ): Promise<Change<void>>;
  /**
   * Queues the execution again while attempts are left, after a pause with jitter `random` (0 to
   * 1); else ends it as failed, or cancelled if that was asked. Repeats as completeTask.
   */
  failTask(
    agent: AgentName,
    report: TaskReport & { readonly failure: TaskFailure; readonly random: number },
  ): Promise<Change<void>>;
  /** Queues the execution again at once; counts as no attempt. Repeats as completeTask. */
  releaseTask(agent: AgentName, report: TaskReport): Promise<Change<void>>;
  /**
   * Moves what is due, at most `limit` executions: leases that ran out, time-outs, cancels whose
   * grace is over. Answers when the next will be due (steady clock; null: nothing is active).
   */
  sweepTasks(limit: number): Promise<Change<{ readonly nextDueUs: number | null }>>;
  /** Gives every held lease its full length again: once, when a server starts. */
  restoreLeases(): Promise<void>;
}

export interface Poll {
  /** Empty: none. */
  readonly pollId: string;
  readonly max: number;
  readonly leaseUs: number;
  isGone(): boolean;
}

export interface Grants {
  readonly tasks: readonly Task[];
  /** The agent's capabilities, as they counted for this poll. */
  readonly capabilities: readonly string[];
  /**
   * When the next execution that the agent may take will be due; null when none waits, or when tasks
   * were granted.
   */
  readonly nextDueUs: number | null;
}

export interface Heartbeat {
  readonly taskId: string;
  readonly leaseToken: string;
  /** Absent: as long as before. */
  readonly leaseUs?: number;
  /** Absent: stays; empty: cleared. */
  readonly progress?: string;
}

export interface HeartbeatResult {
  readonly taskId: string;
  readonly status: "ok" | "cancel_requested" | "lease_lost";
  /** 0 when it is lost. */
  readonly leaseLeftUs: number;
}

export interface TaskReport {
  readonly taskId: string;
  readonly leaseToken: string;
}

export interface RecordStore {
  /**
   * Tries each draft in order: a known mutation id answers as it did the first time; the same
   * version, data and deletion are unchanged; then expected revision, then version decide. `single`
   * and `atomic` write all or nothing and throw SYNC_CONFLICT (IDEMPOTENCY_CONFLICT when a mutation
   * id was used for something else); `each` reports every conflict as an outcome. Accepted records
   * take consecutive positions of the owner's feed.
   */
  pushRecords(
    owner: string,
    push: {
      readonly agentId: string;
      readonly drafts: readonly RecordDraft[];
      readonly mode: "single" | "each" | "atomic";
    },
  ): Promise<Change<readonly PushOutcome[]>>;
  /**
   * Reads the feed after a position, in its order, each thing once in its newest state. Items and
   * head are of one snapshot. The cursor is where to go on: the last place looked at, or the head
   * when nothing is left. A page may hold fewer than `limit` items and still have more to come.
   */
  readFeed(owner: string, query: FeedQuery): Promise<FeedPage>;
  /** The position of the owner's last change; 0 for none. */
  head(owner: string): Promise<number>;
}

export interface FeedQuery {
  /** Exclusive. */
  readonly after: number;
  readonly limit: number;
  /**
   * Bounds the payload bytes of a page; one item always fits. With ids, versions and the rest a page
   * has at most a quarter more.
   */
  readonly bytesMax: number;
  readonly withRecords: boolean;
  readonly withTombstones: boolean;
  /** With tombstones, leaves out those up to this position: a snapshot's. */
  readonly tombstonesAfter?: number;
  readonly kinds: ReadonlySet<ChangeKind>;
  /** Empty: all. Narrows records only. */
  readonly types: readonly string[];
  /** Empty: all. Narrows records only. */
  readonly entityIds: readonly string[];
  /** Leaves out the records that this agent pushed last. */
  readonly exceptAgentId?: string;
}

export interface FeedPage {
  readonly items: readonly FeedItem[];
  readonly cursor: number;
  readonly hasMore: boolean;
  readonly head: number;
}

/** Clients of the token endpoint. Commands write them beside a running server. */
export interface ClientStore {
  /** Throws VALIDATION_ERROR for a name that another client has. */
  addClient(client: Client & { readonly secretHash: string }): Promise<void>;
  /** True when there was one of that name or id. */
  removeClient(nameOrId: string): Promise<boolean>;
  listClients(): Promise<readonly (Client & { readonly secretHash: string })[]>;
  /** A number that changes when another process has written; cheap to ask. */
  foreignChanges(): number;
}

export interface Client {
  readonly id: string;
  readonly name: string;
  readonly owner: string;
  /** Empty: not bound. */
  readonly agentId: string;
  /** Space-separated words; empty: no scope claim. */
  readonly scope: string;
  readonly createdUs: number;
}
