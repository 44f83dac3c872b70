import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AgentService } from "../../gen/sealflow/v1/agent_pb.ts";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../../gen/sealflow/v1/workflow_pb.ts";
import { type TokenSource, withCredentials } from "./call-credentials.ts";
import { serverAddress } from "./server-address.ts";

export { AgentStatus } from "../../gen/sealflow/v1/agent_pb.ts";
export { ExecutionFailure, ExecutionStatus } from "../../gen/sealflow/v1/execution_pb.ts";
export { PushStatus, SyncConflictReason } from "../../gen/sealflow/v1/record_pb.ts";
export { GoingAwayReason, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
export { WorkflowStatus } from "../../gen/sealflow/v1/workflow_pb.ts";
export type { TokenSource } from "./call-credentials.ts";
export { type ClientCredentials, clientCredentials } from "./client-credentials.ts";
export {
  isSealed,
  newKey,
  type RecordBinding,
  SealError,
  type SealErrorCode,
  type SealingKey,
  seal,
  sealRecord,
  unseal,
  unsealRecord,
} from "./crypto.ts";
export { type FailedCall, type Reason, reasonOf } from "./error-reason.ts";
export { indexedDbStorage } from "./replica/indexed-db-storage.ts";
export { memoryStorage } from "./replica/memory-storage.ts";
export {
  openReplica,
  type RecordDraft,
  type ReplicaOptions,
  type StateReplica,
} from "./replica/replica.ts";
export { ReplicaError, type ReplicaErrorCode } from "./replica/replica-error.ts";
export type {
  Conflict,
  DeletedRecord,
  LiveRecord,
  Refusal,
  RefusalCode,
  ReplicaEvent,
  ReplicaRecord,
  Resolution,
} from "./replica/replica-events.ts";
export type {
  OpenStorage,
  PendingPush,
  Position,
  RecordName,
  ReplicaStorage,
  StoredChange,
  StoredRecord,
  StoredState,
} from "./replica/replica-storage.ts";

/** The three services, typed by the contract. */
export interface Sealflow {
  readonly workflows: Client<typeof WorkflowService>;
  readonly agents: Client<typeof AgentService>;
  readonly sync: Client<typeof SyncService>;
}

/** Who calls. */
export interface ConnectOptions {
  /** A token, or a function that gives one for each call, e.g. `clientCredentials(…)`. */
  readonly token: TokenSource;
  /** Sent as `x-agent-id`: the agent or device that calls. */
  readonly agentId: string;
  /** In place of the global one. */
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * Clients of the server at `baseUrl`, its HTTP port: Connect over fetch, in Node and in browsers.
 * Nothing is sent before the first call. A call fails with a ConnectError; `reasonOf` reads it.
 * @throws TypeError when `baseUrl` is no http or https address
 */
export function connect(baseUrl: string, { token, agentId, fetch }: ConnectOptions): Sealflow {
  const transport = createConnectTransport({
    baseUrl: serverAddress(baseUrl),
    useBinaryFormat: true,
    interceptors: [withCredentials(token, agentId)],
    ...(fetch === undefined ? {} : { fetch }),
  });
  return {
    workflows: createClient(WorkflowService, transport),
    agents: createClient(AgentService, transport),
    sync: createClient(SyncService, transport),
  };
}
