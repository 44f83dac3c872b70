import type { Agent } from "../../src/domain/agent.ts";
import type { Workflow } from "../../src/domain/workflow.ts";
import type {
  Change,
  ExecutionDraft,
  Registration,
  Store,
  WorkflowDraft,
} from "../../src/storage/port.ts";

/** What stores are tested with: everything given, nothing special. */

export function workflowDraft(changes: Partial<WorkflowDraft> = {}): WorkflowDraft {
  return {
    id: "w1",
    name: "nightly report",
    description: "sums up the day",
    encryptedData: "c2VjcmV0",
    encryptionKey: "the key",
    agentId: "",
    allowPublic: false,
    requiredCapabilities: [],
    ...changes,
  };
}

export function registration(changes: Partial<Registration> = {}): Registration {
  return {
    id: "agent-1",
    name: "Agent one",
    type: "worker",
    capabilities: [],
    isPublic: false,
    ...changes,
  };
}

export function executionDraft(changes: Partial<ExecutionDraft> = {}): ExecutionDraft {
  return {
    id: "e1",
    workflowId: "w1",
    agentId: "",
    allowPublic: false,
    input: "{}",
    timeoutUs: 900_000_000,
    startTimeoutUs: 86_400_000_000,
    maxAttempts: 3,
    atMostOnce: false,
    ...changes,
  };
}

export async function makeWorkflow(
  store: Store,
  owner: string,
  changes: Partial<WorkflowDraft> = {},
): Promise<Workflow> {
  return (await store.workflows.createWorkflow(owner, workflowDraft(changes))).result.workflow;
}

export async function makeAgent(
  store: Store,
  owner: string,
  changes: Partial<Registration> = {},
): Promise<Agent> {
  return (await store.agents.registerAgent(owner, registration(changes))).result.agent;
}

export async function resultOf<T>(change: Promise<Change<T>>): Promise<T> {
  return (await change).result;
}
