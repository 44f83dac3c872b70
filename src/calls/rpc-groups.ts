import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import type { Group } from "../domain/groups.ts";

type GroupsOf<S extends DescService> = Record<keyof S["method"], Group>;

/** The group of an rpc is the first segment of its REST path. */
const workflowGroups = {
  getWorkflow: "workflows",
  listWorkflows: "workflows",
  createWorkflow: "workflows",
  executeWorkflow: "workflows",
  updateWorkflow: "workflows",
  deleteWorkflow: "workflows",
  listExecutions: "workflows",
  getExecution: "executions",
  cancelExecution: "executions",
} as const satisfies GroupsOf<typeof WorkflowService>;

const agentGroups = {
  getAgent: "agents",
  listAgents: "agents",
  registerAgent: "agents",
  executeAgent: "agents",
  deregisterAgent: "agents",
  pollTasks: "tasks",
  heartbeatTasks: "tasks",
  completeTask: "tasks",
  failTask: "tasks",
  releaseTask: "tasks",
} as const satisfies GroupsOf<typeof AgentService>;

const syncGroups = {
  pushState: "sync",
  pullState: "sync",
  subscribe: "sync",
} as const satisfies GroupsOf<typeof SyncService>;

export const rpcGroups: ReadonlyMap<DescMethod, Group> = new Map([
  ...groupsOf(WorkflowService, workflowGroups),
  ...groupsOf(AgentService, agentGroups),
  ...groupsOf(SyncService, syncGroups),
]);

function groupsOf<S extends DescService>(service: S, groups: GroupsOf<S>): [DescMethod, Group][] {
  return service.methods.map((method) => [method, groups[method.localName as keyof GroupsOf<S>]]);
}
