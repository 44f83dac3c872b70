import { type AgentService, AgentStatus } from "../../gen/sealflow/v1/agent_pb.ts";
import type { AgentStatus as AgentWord } from "../domain/agent.ts";
import { limits } from "../domain/limits.ts";
import { capabilitySet } from "../domain/workflow.ts";
import type { Handlers, ServiceParts } from "./call.ts";
import { execute } from "./execute.ts";
import { toAgent, toAgentResult } from "./messages.ts";
import { pageSize, readPageToken, writePageToken } from "./page-token.ts";
import { type TaskHandlers, taskHandlers } from "./task.ts";

/** Agents, calls of them, and their side of the queue (task.ts). */
export function agentHandlers(parts: ServiceParts): Handlers<typeof AgentService> {
  const { store, wakeups } = parts;
  return {
    ...(taskHandlers(parts) satisfies TaskHandlers),

    async getAgent({ id }, { owner }) {
      return toAgent(await store.agents.getAgent(owner, id));
    },

    async listAgents({ status, limit, pageToken }, { owner }) {
      const word = statusWords[status];
      const filter = `agents ${word ?? ""}`;
      const after = readPageToken(filter, pageToken);
      const page = await store.agents.listAgents(owner, {
        limit: pageSize(limit, limits.agentPageSize),
        ...(word === undefined ? {} : { status: word }),
        ...(after === undefined ? {} : { after: { ...after, isOwn: after.isOwn ?? true } }),
      });
      const last = page.hasMore ? page.items.at(-1) : undefined;
      return {
        agents: page.items.map(toAgent),
        total: page.total,
        hasMore: page.hasMore,
        nextPageToken:
          last === undefined
            ? ""
            : writePageToken(filter, {
                createdUs: last.registeredUs,
                id: last.id,
                isOwn: last.owner === owner,
              }),
      };
    },

    async registerAgent(request, call) {
      call.requireAgent(request.id);
      const { result, touched } = await store.agents.registerAgent(call.owner, {
        id: request.id,
        name: request.name === "" ? request.id : request.name,
        type: request.type,
        capabilities: capabilitySet(request.capabilities),
        isPublic: request.isPublic,
      });
      wakeups.announce(touched);
      call.outcome.created = result.created;
      return toAgent(result.agent);
    },

    async executeAgent(request, call) {
      const target = { workflowId: null, agentId: request.id, allowPublic: false };
      const { execution, notes } = await execute(parts, call, { target, request });
      return toAgentResult(execution, notes);
    },

    async deregisterAgent({ id }, call) {
      call.requireAgent(id);
      const { touched } = await store.agents.deregisterAgent(call.owner, id);
      wakeups.polls.dismiss(call.owner, id);
      wakeups.announce(touched);
      return {};
    },
  };
}

const statusWords: Record<AgentStatus, AgentWord | undefined> = {
  [AgentStatus.UNSPECIFIED]: undefined,
  [AgentStatus.ACTIVE]: "active",
  [AgentStatus.INACTIVE]: "inactive",
};
