import { sql } from "drizzle-orm";
import type { AgentName } from "../../../domain/agent.ts";
import { agentNotFound, invalid, ServiceError, workflowNotFound } from "../../../domain/errors.ts";
import { routeOf } from "../../../domain/execution.ts";
import { limits } from "../../../domain/limits.ts";
import type { ExecutionDraft } from "../../port.ts";
import { type AgentNames, requireAllowed } from "../agents/agent-names.ts";
import { splitCapabilities } from "../agents/capability-text.ts";
import { bound } from "../bound.ts";
import type { SqliteContext } from "../context.ts";
import { workflow } from "../schema.ts";
import type { Takers } from "../tasks/takers.ts";
import { queuedCounter } from "./execution-counters.ts";
import type { Queue } from "./queue.ts";

/** What a workflow says about who may run it. */
export interface Runnable {
  readonly agent: AgentName;
  readonly allowPublic: boolean;
  readonly requiredCapabilities: readonly string[];
}

/** Where an execution is to wait: the owner of the agents that may take it, and the route. */
export interface Line {
  readonly owner: string;
  readonly route: string;
}

/** Finds the line of a new execution. */
export interface Lines {
  /** Throws WORKFLOW_NOT_FOUND. */
  requireWorkflow(owner: string, id: string): Runnable;
  /**
   * `runnable`: what is run; null for the agent itself that the draft names. Throws AGENT_NOT_FOUND,
   * VALIDATION_ERROR, QUEUE_FULL.
   */
  choose(owner: string, draft: ExecutionDraft, runnable: Runnable | null): Line;
}

export interface LineNeeds {
  readonly names: AgentNames;
  readonly takers: Takers;
  readonly queue: Queue;
}

const queueFullPauseMs = 5_000;

export function createLines({ db, ledger }: SqliteContext, needs: LineNeeds): Lines {
  const { names, takers, queue } = needs;
  const readWorkflow = createWorkflowRead(db);

  function chooseAgent(owner: string, draft: ExecutionDraft, runnable: Runnable): AgentName {
    const named = runnable.agent;
    const allowPublic = draft.allowPublic || runnable.allowPublic;
    if (named.id === "") return names.choose(owner, { agentId: draft.agentId, allowPublic });
    if (draft.agentId !== "" && draft.agentId !== named.id) {
      throw invalid("agent_id", "is another agent than the workflow's");
    }
    // It stays the one that was found when the workflow was written.
    const taker = takers.find(named);
    const isThere = taker !== null && (taker.owner === owner || taker.isPublic);
    if (!isThere) throw agentNotFound(named.id);
    requireAllowed(owner, named, allowPublic);
    return named;
  }

  function requireAgent(owner: string, id: string): AgentName {
    const found = names.resolve(owner, id);
    if (found === null) throw agentNotFound(id);
    return found;
  }

  function requireRoom(owner: string, line: Line, isNamed: boolean): void {
    if (ledger.counted(queuedCounter(owner)) >= limits.queuedExecutionsMax) {
      throw queueFull("queuedExecutions", `${limits.queuedExecutionsMax} executions are queued`);
    }
    if (isNamed || queue.isWaitedIn(line)) return;
    if (queue.countSets(owner) >= limits.queuedRoutesMax) {
      const text = `Executions of ${limits.queuedRoutesMax} sets of capabilities are queued`;
      throw queueFull("capabilitySets", text);
    }
  }

  return {
    requireWorkflow(owner, id) {
      const row = readWorkflow.get({ owner, id });
      if (row === undefined) throw workflowNotFound(id);
      return {
        agent: { owner: row.agentOwner, id: row.agentId },
        allowPublic: row.allowPublic,
        requiredCapabilities: splitCapabilities(row.requiredCapabilities),
      };
    },
    choose(owner, draft, runnable) {
      const agent =
        runnable === null
          ? requireAgent(owner, draft.agentId)
          : chooseAgent(owner, draft, runnable);
      const isNamed = agent.id !== "";
      const route = routeOf(agent.id, runnable?.requiredCapabilities ?? []);
      const line = { owner: isNamed ? agent.owner : owner, route };
      requireRoom(owner, line, isNamed);
      return line;
    },
  };
}

function createWorkflowRead(db: SqliteContext["db"]) {
  return db
    .select({
      agentOwner: workflow.agentOwner,
      agentId: workflow.agentId,
      allowPublic: workflow.allowPublic,
      requiredCapabilities: workflow.requiredCapabilities,
    })
    .from(workflow)
    .where(sql`${workflow.id} = ${bound("id")}
      AND ${workflow.owner} = ${bound("owner")} AND ${workflow.deletedUs} IS NULL`)
    .prepare();
}

function queueFull(limit: string, message: string): ServiceError {
  return new ServiceError("QUEUE_FULL", message, {
    details: { limit },
    retryAfterMs: queueFullPauseMs,
  });
}
