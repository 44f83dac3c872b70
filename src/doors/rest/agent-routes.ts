import { AgentService, AgentStatus } from "../../../gen/sealflow/v1/agent_pb.ts";
import { TaskHeartbeatStatus } from "../../../gen/sealflow/v1/task_pb.ts";
import { ServiceError } from "../../domain/errors.ts";
import { durationText } from "./durations.ts";
import { noContent, ok, route } from "./route.ts";
import { agentView, executionView, taskView } from "./views.ts";
import { readWord } from "./words.ts";
import { executed, executeFields } from "./workflow-routes.ts";

const rpc = AgentService.method;

const statuses: Readonly<Record<string, AgentStatus>> = {
  active: AgentStatus.ACTIVE,
  inactive: AgentStatus.INACTIVE,
};

export const agentRoutes = [
  route("GET /agents", rpc.listAgents, {
    ask: ({ query }) => ({
      status: readWord(query, "status", statuses),
      limit: query.whole("limit"),
      pageToken: query.text("pageToken"),
    }),
    tell: ({ agents, total, hasMore, nextPageToken }) =>
      ok({
        agents: agents.map(agentView),
        total,
        hasMore,
        nextPageToken: nextPageToken || undefined,
      }),
  }),

  route("POST /agents/register", rpc.registerAgent, {
    ask: ({ body }) => ({
      id: body.text("id"),
      type: body.text("type"),
      capabilities: body.texts("capabilities"),
      name: body.text("name"),
      isPublic: body.flag("isPublic"),
    }),
    tell: (agent, { outcome }) => ({
      status: outcome.created === true ? 201 : 200,
      body: agentView(agent),
      location: `/api/v1/agents/${agent.id}`,
    }),
  }),

  route("GET /agents/:id", rpc.getAgent, {
    ask: ({ params }) => ({ id: params.id }),
    tell: (agent) => ok(agentView(agent)),
  }),

  route("DELETE /agents/:id", rpc.deregisterAgent, {
    ask: ({ params }) => ({ id: params.id }),
    tell: noContent,
  }),

  route("POST /agents/:id/execute", rpc.executeAgent, {
    ask: (asked) => ({ id: asked.params.id, ...executeFields(asked) }),
    tell: (execution, { outcome }) => executed(executionView(execution), outcome),
  }),

  route("POST /tasks/poll", rpc.pollTasks, {
    ask: ({ body, preferredWait }) => ({
      maxTasks: body.whole("maxTasks"),
      wait: body.duration("wait") ?? preferredWait,
      lease: body.duration("lease"),
      pollId: body.text("pollId"),
    }),
    tell: ({ tasks }) => ok({ tasks: tasks.map(taskView) }),
  }),

  // One task, so that a lost lease can be its error.
  route("POST /tasks/:id/heartbeat", rpc.heartbeatTasks, {
    ask: ({ params, body, preferredWait }) => ({
      tasks: [
        {
          taskId: params.id,
          leaseToken: body.text("leaseToken"),
          lease: body.duration("lease"),
          progress: body.text("progress"),
        },
      ],
      wait: body.duration("wait") ?? preferredWait,
    }),
    tell: ({ results: [result] }) => {
      if (result === undefined || result.status === TaskHeartbeatStatus.LEASE_LOST) {
        throw new ServiceError("LEASE_LOST", "The attempt is over: drop the work", {
          details: { taskId: result?.taskId ?? "" },
        });
      }
      return ok({
        cancelRequested: result.status === TaskHeartbeatStatus.CANCEL_REQUESTED,
        leaseLeft: result.leaseLeft && durationText(result.leaseLeft),
      });
    },
  }),

  route("POST /tasks/:id/complete", rpc.completeTask, {
    ask: ({ params, body }) => ({
      taskId: params.id,
      leaseToken: body.text("leaseToken"),
      output: body.json("output"),
    }),
    tell: () => ok({}),
  }),

  route("POST /tasks/:id/fail", rpc.failTask, {
    ask: ({ params, body }) => {
      const error = body.group("error");
      return {
        taskId: params.id,
        leaseToken: body.text("leaseToken"),
        error: error && { code: error.text("code"), message: error.text("message") },
        retryable: body.flag("retryable"),
        retryAfter: body.duration("retryAfter"),
      };
    },
    tell: () => ok({}),
  }),

  route("POST /tasks/:id/release", rpc.releaseTask, {
    ask: ({ params, body }) => ({ taskId: params.id, leaseToken: body.text("leaseToken") }),
    tell: () => ok({}),
  }),
];
