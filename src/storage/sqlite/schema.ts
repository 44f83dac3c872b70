import { sql } from "drizzle-orm";
import {
  blob,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";

/** Microseconds since the epoch, or a position of the feed: exact as a JavaScript number. */
const micros = (name: string) => integer(name, { mode: "number" });
const flag = (name: string) => integer(name, { mode: "boolean" });

/** One row a name: the epoch, the check value of the server's key. */
export const meta = sqliteTable("meta", {
  name: text("name").primaryKey(),
  value: text("value").notNull(),
});

/** The position of each owner's last change. */
export const feedHead = sqliteTable("feed_head", {
  owner: text("owner").primaryKey(),
  seq: micros("seq").notNull(),
});

/** How many rows of a kind and status an owner has; kept in the transaction that changes them. */
export const counter = sqliteTable(
  "counter",
  {
    owner: text("owner").notNull(),
    /** `workflow`, `agent`, `execution:WORKFLOW_ID`, `queued`; of owner '' `public_agent`. */
    kind: text("kind").notNull(),
    status: text("status").notNull(),
    n: integer("n").notNull(),
  },
  (t) => [primaryKey({ columns: [t.owner, t.kind, t.status] })],
);

/** A deleted workflow keeps its row for 30 days, without name, description and payload. */
export const workflow = sqliteTable(
  "workflow",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    name: text("name").notNull(),
    description: text("description").notNull(),
    status: text("status", { enum: ["draft", "running", "completed", "failed"] }).notNull(),
    /** The named agent as it was found when written; both empty when none is named. */
    agentOwner: text("agent_owner").notNull(),
    agentId: text("agent_id").notNull(),
    allowPublic: flag("allow_public").notNull(),
    /** Sorted, joined by commas. */
    requiredCapabilities: text("required_capabilities").notNull(),
    /** Active executions that were granted once, and that never were. */
    runsStarted: integer("runs_started").notNull(),
    runsWaiting: integer("runs_waiting").notNull(),
    lastOutcome: text("last_outcome", { enum: ["completed", "failed"] }),
    createdUs: micros("created_us").notNull(),
    updatedUs: micros("updated_us").notNull(),
    deletedUs: micros("deleted_us"),
    seq: micros("seq").notNull(),
  },
  (t) => [
    index("workflow_newest").on(t.owner, t.createdUs, t.id).where(sql`deleted_us IS NULL`),
    index("workflow_by_status")
      .on(t.owner, t.status, t.createdUs, t.id)
      .where(sql`deleted_us IS NULL`),
    uniqueIndex("workflow_feed").on(t.owner, t.seq),
    index("workflow_deleted").on(t.deletedUs).where(sql`deleted_us IS NOT NULL`),
  ],
);

/** Apart from the rows that move. */
export const workflowPayload = sqliteTable("workflow_payload", {
  workflowId: text("workflow_id").primaryKey(),
  encryptedData: text("encrypted_data").notNull(),
  sealedKey: blob("sealed_key", { mode: "buffer" }),
});

/** A deregistered agent keeps its row: its id stays its owner's. */
export const agent = sqliteTable(
  "agent",
  {
    owner: text("owner").notNull(),
    id: text("id").notNull(),
    name: text("name").notNull(),
    type: text("type").notNull(),
    /** Sorted, joined by commas. */
    capabilities: text("capabilities").notNull(),
    status: text("status", { enum: ["active", "inactive"] }).notNull(),
    isPublic: flag("is_public").notNull(),
    registeredUs: micros("registered_us").notNull(),
    lastSeenUs: micros("last_seen_us").notNull(),
    deletedUs: micros("deleted_us"),
    seq: micros("seq").notNull(),
    /** When `seq` last moved. */
    changedUs: micros("changed_us").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.owner, t.id] }),
    index("agent_newest").on(t.owner, t.registeredUs, t.id).where(sql`deleted_us IS NULL`),
    index("agent_by_status")
      .on(t.owner, t.status, t.registeredUs, t.id)
      .where(sql`deleted_us IS NULL`),
    uniqueIndex("agent_public_id").on(t.id).where(sql`is_public = 1 AND deleted_us IS NULL`),
    index("agent_public_newest")
      .on(t.registeredUs, t.id)
      .where(sql`is_public = 1 AND deleted_us IS NULL`),
    index("agent_seen").on(t.lastSeenUs).where(sql`status = 'active' AND deleted_us IS NULL`),
    uniqueIndex("agent_feed").on(t.owner, t.seq),
  ],
);

/** The queue is the index execution_ready; nothing of it lives in memory. */
export const execution = sqliteTable(
  "execution",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    workflowId: text("workflow_id").notNull(),
    /** The line it waits in: the owner of the agents that may take it, and the route. */
    routeOwner: text("route_owner").notNull(),
    route: text("route").notNull(),
    status: text("status", {
      enum: ["queued", "running", "completed", "failed", "cancelled", "timed_out"],
    }).notNull(),
    /** When it may be granted. */
    dueUs: micros("due_us").notNull(),
    /** How long that was put off when it was queued: no restart makes it longer. */
    pauseUs: micros("pause_us").notNull(),
    /** When the sweeper must look at it next; null once it has ended. */
    wakeUs: micros("wake_us"),
    attempt: integer("attempt").notNull(),
    /** Whether the next grant is a new attempt: not after a release. */
    isNewAttempt: flag("is_new_attempt").notNull(),
    failures: integer("failures").notNull(),
    losses: integer("losses").notNull(),
    maxAttempts: integer("max_attempts").notNull(),
    atMostOnce: flag("at_most_once").notNull(),
    timeoutUs: micros("timeout_us").notNull(),
    startTimeoutUs: micros("start_timeout_us").notNull(),
    startDeadlineUs: micros("start_deadline_us").notNull(),
    /** Set by the first grant. */
    deadlineUs: micros("deadline_us"),
    /** The latest attempt: whose, by which poll, until when. Kept while nobody else was granted. */
    agentOwner: text("agent_owner").notNull(),
    agentId: text("agent_id").notNull(),
    pollId: text("poll_id").notNull(),
    leaseToken: text("lease_token").notNull(),
    leaseUs: micros("lease_us").notNull(),
    leaseUntilUs: micros("lease_until_us"),
    /** When a cancel that was asked for ends it. */
    cancelUs: micros("cancel_us"),
    failure: text("failure", {
      enum: ["AGENT_ERROR", "AGENT_LOST", "OUTCOME_UNKNOWN", "SCHEDULE_TO_START", "EXECUTION"],
    }),
    errorCode: text("error_code").notNull(),
    createdUs: micros("created_us").notNull(),
    startedUs: micros("started_us"),
    finishedUs: micros("finished_us"),
    /** Moves at create, first grant and end only. */
    seq: micros("seq").notNull(),
    /** When `seq` last moved. */
    changedUs: micros("changed_us").notNull(),
  },
  (t) => [
    index("execution_ready").on(t.routeOwner, t.route, t.dueUs, t.id).where(sql`status = 'queued'`),
    index("execution_wake").on(t.wakeUs).where(sql`wake_us IS NOT NULL`),
    index("execution_held").on(t.agentOwner, t.agentId).where(sql`status = 'running'`),
    index("execution_of_workflow").on(t.workflowId, t.createdUs, t.id),
    index("execution_active").on(t.workflowId).where(sql`wake_us IS NOT NULL`),
    uniqueIndex("execution_feed").on(t.owner, t.seq),
    index("execution_finished").on(t.finishedUs).where(sql`finished_us IS NOT NULL`),
  ],
);

/** Sealed input, output, progress and error text: apart, for a heartbeat must not rewrite them. */
export const executionContent = sqliteTable(
  "execution_content",
  {
    executionId: text("execution_id").notNull(),
    field: text("field", { enum: ["input", "output", "progress", "error"] }).notNull(),
    sealed: blob("sealed", { mode: "buffer" }).notNull(),
  },
  (t) => [uniqueIndex("execution_content_field").on(t.executionId, t.field)],
);

/** Lease tokens that were reported: a repeated report is answered truthfully. */
export const taskReport = sqliteTable(
  "task_report",
  {
    executionId: text("execution_id").notNull(),
    leaseToken: text("lease_token").notNull(),
    verb: text("verb", { enum: ["complete", "fail", "release"] }).notNull(),
    /** Who reported. */
    agentOwner: text("agent_owner").notNull(),
    agentId: text("agent_id").notNull(),
  },
  (t) => [primaryKey({ columns: [t.executionId, t.leaseToken] })],
);

/** Who was ever granted a task: others are told TASK_NOT_FOUND. */
export const taskGrant = sqliteTable(
  "task_grant",
  {
    executionId: text("execution_id").notNull(),
    attempt: integer("attempt").notNull(),
    agentOwner: text("agent_owner").notNull(),
    agentId: text("agent_id").notNull(),
    /** Whether the workflow's key was handed over. */
    keyReleased: flag("key_released").notNull(),
    grantedUs: micros("granted_us").notNull(),
  },
  (t) => [index("task_grant_execution").on(t.executionId, t.grantedUs)],
);

/** Request ids that were used, and for what. */
export const request = sqliteTable(
  "request",
  {
    owner: text("owner").notNull(),
    rpc: text("rpc").notNull(),
    target: text("target").notNull(),
    requestId: text("request_id").notNull(),
    fingerprint: text("fingerprint").notNull(),
    objectId: text("object_id").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.owner, t.rpc, t.target, t.requestId] }),
    index("request_object").on(t.objectId),
  ],
);

/** The newest state of each entity; a tombstone is a row. */
export const syncEntity = sqliteTable(
  "sync_entity",
  {
    owner: text("owner").notNull(),
    type: text("type").notNull(),
    entityId: text("entity_id").notNull(),
    version: text("version").notNull(),
    deleted: flag("deleted").notNull(),
    revision: integer("revision").notNull(),
    agentId: text("agent_id").notNull(),
    createdUs: micros("created_us").notNull(),
    updatedUs: micros("updated_us").notNull(),
    seq: micros("seq").notNull(),
    /** The last column: what stands before a large value is read without its pages. */
    encryptedData: text("encrypted_data").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.owner, t.type, t.entityId] }),
    // Live records and tombstones apart: tombstones stay for ever, and a snapshot skips them all.
    uniqueIndex("sync_entity_feed").on(t.owner, t.deleted, t.seq),
    index("sync_entity_type_feed").on(t.owner, t.type, t.deleted, t.seq),
    index("sync_entity_id_feed").on(t.owner, t.entityId, t.deleted, t.seq),
  ],
);

/** Mutation ids that were accepted, with what was answered, without payload. Kept for 7 days. */
export const syncMutation = sqliteTable(
  "sync_mutation",
  {
    owner: text("owner").notNull(),
    mutationId: text("mutation_id").notNull(),
    type: text("type").notNull(),
    entityId: text("entity_id").notNull(),
    version: text("version").notNull(),
    deleted: flag("deleted").notNull(),
    status: text("status", { enum: ["created", "updated", "deleted", "unchanged"] }).notNull(),
    revision: integer("revision").notNull(),
    seq: micros("seq").notNull(),
    agentId: text("agent_id").notNull(),
    createdUs: micros("created_us").notNull(),
    updatedUs: micros("updated_us").notNull(),
    acceptedUs: micros("accepted_us").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.owner, t.mutationId] }),
    index("sync_mutation_accepted").on(t.acceptedUs),
  ],
);

/** Clients of the token endpoint. */
export const client = sqliteTable("client", {
  id: text("id").primaryKey(),
  name: text("name").notNull().unique(),
  owner: text("owner").notNull(),
  agentId: text("agent_id").notNull(),
  scope: text("scope").notNull(),
  /** SHA-256 of the secret, which is random: base64url. */
  secretHash: text("secret_hash").notNull(),
  createdUs: micros("created_us").notNull(),
});
