import type { Json } from "./canonical.ts";

type Body = Record<string, Json>;

export interface RestCall {
  readonly verb: string;
  readonly path: string;
  readonly body?: Json;
}

const id = (value: Json | undefined) => encodeURIComponent(String(value));

function query(values: Body): string {
  const pairs = Object.entries(values).flatMap(([name, value]) =>
    [value].flat().map((item) => `${name}=${encodeURIComponent(String(item))}`),
  );
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

/** How a client of REST would write each call. */
export const restCalls = {
  getWorkflow: (r: Body) => ({ verb: "GET", path: `/workflows/${id(r["id"])}` }),
  listWorkflows: (r: Body) => ({ verb: "GET", path: `/workflows${query(r)}` }),
  createWorkflow: (r: Body) => ({ verb: "POST", path: "/workflows", body: r }),
  executeWorkflow: ({ id: of, ...body }: Body) => ({
    verb: "POST",
    path: `/workflows/${id(of)}/execute`,
    body,
  }),
  updateWorkflow: ({ id: of, ...body }: Body) => ({
    verb: "PATCH",
    path: `/workflows/${id(of)}`,
    body,
  }),
  deleteWorkflow: (r: Body) => ({ verb: "DELETE", path: `/workflows/${id(r["id"])}` }),
  getExecution: ({ id: of, ...rest }: Body) => ({
    verb: "GET",
    path: `/executions/${id(of)}${query(rest)}`,
  }),
  listExecutions: ({ workflowId, ...rest }: Body) => ({
    verb: "GET",
    path: `/workflows/${id(workflowId)}/executions${query(rest)}`,
  }),
  cancelExecution: (r: Body) => ({ verb: "POST", path: `/executions/${id(r["id"])}/cancel` }),
  getAgent: (r: Body) => ({ verb: "GET", path: `/agents/${id(r["id"])}` }),
  listAgents: (r: Body) => ({ verb: "GET", path: `/agents${query(r)}` }),
  registerAgent: (r: Body) => ({ verb: "POST", path: "/agents/register", body: r }),
  executeAgent: ({ id: of, ...body }: Body) => ({
    verb: "POST",
    path: `/agents/${id(of)}/execute`,
    body,
  }),
  deregisterAgent: (r: Body) => ({ verb: "DELETE", path: `/agents/${id(r["id"])}` }),
  pollTasks: (r: Body) => ({ verb: "POST", path: "/tasks/poll", body: r }),
  heartbeatTask: ({ taskId, ...body }: Body) => ({
    verb: "POST",
    path: `/tasks/${id(taskId)}/heartbeat`,
    body,
  }),
  completeTask: ({ taskId, ...body }: Body) => ({
    verb: "POST",
    path: `/tasks/${id(taskId)}/complete`,
    body,
  }),
  failTask: ({ taskId, ...body }: Body) => ({
    verb: "POST",
    path: `/tasks/${id(taskId)}/fail`,
    body,
  }),
  releaseTask: ({ taskId, ...body }: Body) => ({
    verb: "POST",
    path: `/tasks/${id(taskId)}/release`,
    body,
  }),
  pushState: (r: Body) => ({ verb: "POST", path: "/sync/push", body: r }),
  pullState: (r: Body) => ({ verb: "GET", path: `/sync/pull${query(r)}` }),
  subscribe: (r: Body) => ({ verb: "GET", path: `/sync/subscribe${query(r)}` }),
} as const satisfies Record<string, (request: Body) => RestCall>;

export type RpcName = keyof typeof restCalls;
