import type { AgentName } from "../../../domain/agent.ts";
import type { WorkflowChanges, WorkflowDraft } from "../../port.ts";
import { type AgentNames, requireAllowed } from "../agents/agent-names.ts";
import { joinCapabilities } from "../agents/capability-text.ts";
import type { SqliteContext } from "../context.ts";
import { requireOne } from "../require-one.ts";
import type { WorkflowRow, WorkflowRows } from "./workflow-rows.ts";

/** The edits of workflows. Each takes a position of the feed; only to be used inside a write. */
export interface WorkflowEdits {
  /** Throws AGENT_NOT_FOUND, VALIDATION_ERROR. */
  insert(owner: string, draft: WorkflowDraft): void;
  /** Changes what is given. Throws AGENT_NOT_FOUND, VALIDATION_ERROR. */
  update(owner: string, row: WorkflowRow, changes: WorkflowChanges): void;
  /** Leaves the id alone, for the feed. */
  erase(owner: string, row: WorkflowRow): void;
}

/** Counts workflows by status. */
export const workflowCounter = "workflow";

export function createWorkflowEdits(
  context: SqliteContext,
  names: AgentNames,
  rows: WorkflowRows,
): WorkflowEdits {
  const { ledger, clock, sealer } = context;

  function sealKey(owner: string, id: string, key: string): Buffer | null {
    return key === "" ? null : sealer.seal({ owner, id, field: "encryption_key" }, key);
  }

  return {
    insert(owner, draft) {
      const { id, encryptedData } = draft;
      const agent = names.choose(owner, draft);
      rows.insert.run({
        id,
        owner,
        name: draft.name,
        description: draft.description,
        agentOwner: agent.owner,
        agentId: agent.id,
        allowPublic: draft.allowPublic,
        requiredCapabilities: joinCapabilities(draft.requiredCapabilities),
        nowUs: clock.wallUs(),
        seq: ledger.nextSeq(owner),
      });
      const sealedKey = sealKey(owner, id, draft.encryptionKey);
      rows.insertPayload.run({ id, encryptedData, sealedKey });
      ledger.count({ owner, kind: workflowCounter, status: "draft" }, 1);
    },

    update(owner, row, changes) {
      const { id } = row;
      const { encryptedData, encryptionKey, requiredCapabilities } = changes;
      const agent = chooseAgent(row, changes, names);
      rows.update.run({
        owner,
        id,
        name: changes.name ?? row.name,
        description: changes.description ?? row.description,
        agentOwner: agent.owner,
        agentId: agent.id,
        // Drizzle encodes no placeholder of an update.
        allowPublic: Number(changes.allowPublic ?? row.allowPublic),
        requiredCapabilities:
          requiredCapabilities === undefined
            ? row.requiredCapabilities
            : joinCapabilities(requiredCapabilities),
        nowUs: clock.wallUs(),
        seq: ledger.nextSeq(owner),
      });
      if (encryptedData !== undefined) rows.updateData.run({ id, encryptedData });
      if (encryptionKey !== undefined) {
        rows.updateKey.run({ id, sealedKey: sealKey(owner, id, encryptionKey) });
      }
    },

    erase(owner, { id, status }) {
      ledger.count({ owner, kind: workflowCounter, status }, -1);
      const seq = ledger.nextSeq(owner);
      requireOne(rows.markDeleted.run({ owner, id, nowUs: clock.wallUs(), seq }));
      rows.erasePayload.run({ id });
    },
  };
}

/** An agent that is not named anew stays the one found when it was written. */
function chooseAgent(row: WorkflowRow, changes: WorkflowChanges, names: AgentNames): AgentName {
  const { owner } = row;
  const allowPublic = changes.allowPublic ?? row.allowPublic;
  if (changes.agentId !== undefined) {
    return names.choose(owner, { agentId: changes.agentId, allowPublic });
  }
  const agent = { owner: row.agentOwner, id: row.agentId };
  requireAllowed(owner, agent, allowPublic);
  return agent;
}
