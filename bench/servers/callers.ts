import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import type { HeaderField } from "../load/hpack.ts";
import type { Server } from "./server.ts";

/** The header fields that say who calls. Peers ignore them, and get them all the same. */
export function identity(token: string, agentId = "bench"): readonly HeaderField[] {
  return [
    ["authorization", `Bearer ${token}`],
    ["x-agent-id", agentId],
  ];
}

export interface Rpcs {
  readonly workflows: Client<typeof WorkflowService>;
  readonly agents: Client<typeof AgentService>;
  readonly sync: Client<typeof SyncService>;
}

/** An ordinary client over gRPC, for what is not measured: it checks statuses and decodes. */
export function rpcs(server: Server, fields: readonly HeaderField[]): Rpcs {
  const named: Interceptor = (next) => (request) => {
    for (const [name, value] of fields) request.header.set(name, value);
    return next(request);
  };
  const transport = createGrpcTransport({
    baseUrl: `http://127.0.0.1:${grpcPort(server)}`,
    interceptors: [named],
  });
  return {
    workflows: createClient(WorkflowService, transport),
    agents: createClient(AgentService, transport),
    sync: createClient(SyncService, transport),
  };
}

export function grpcPort({ name, grpcPort: port }: Server): number {
  if (port === undefined) throw new Error(`${name} does not speak gRPC`);
  return port;
}

export function httpPort({ name, httpPort: port }: Server): number {
  if (port === undefined) throw new Error(`${name} does not speak HTTP/1.1`);
  return port;
}
