// A bare @grpc/grpc-js server, as its own documentation builds one.
import { fileURLToPath } from "node:url";
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { type AnyDefinition, loadSync, type ServiceDefinition } from "@grpc/proto-loader";
import { readArguments, serving } from "./arguments.ts";
import type { RecordRow, WorkflowRow } from "./tables.ts";

interface WorkflowRequest {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly encrypted_data: string;
}

interface PushRecord {
  readonly type: string;
  readonly entity_id: string;
  readonly version: string;
  readonly encrypted_data: string;
}

type PushRequest = PushRecord & { readonly records: readonly PushRecord[] };

const statuses = { created: 1, updated: 2 } as const;
const workflowStatuses = { draft: 1, running: 2, completed: 3, failed: 4 } as const;

const { tables } = readArguments();
const protoFolder = fileURLToPath(new URL("../../proto", import.meta.url));
const contract = loadSync(["sealflow/v1/workflow.proto", "sealflow/v1/sync.proto"], {
  includeDirs: [protoFolder, `${protoFolder}/third_party`],
  keepCase: true,
  longs: Number,
  defaults: true,
});
const server = new Server();
add("sealflow.v1.WorkflowService", {
  GetWorkflow(
    { request }: ServerUnaryCall<WorkflowRequest, unknown>,
    answer: sendUnaryData<unknown>,
  ) {
    const row = tables.getWorkflow(request.id);
    if (row === undefined) answer({ code: status.NOT_FOUND, details: "Workflow not found" });
    else answer(null, workflowOf(row));
  },
  CreateWorkflow(
    { request }: ServerUnaryCall<WorkflowRequest, unknown>,
    answer: sendUnaryData<unknown>,
  ) {
    const { name, description, encrypted_data: encryptedData } = request;
    answer(null, workflowOf(tables.createWorkflow({ name, description, encryptedData })));
  },
});
add("sealflow.v1.SyncService", {
  PushState({ request }: ServerUnaryCall<PushRequest, unknown>, answer: sendUnaryData<unknown>) {
    const isBatch = request.records.length > 0;
    const rows = tables.pushRecords((isBatch ? request.records : [request]).map(recordDraft));
    const results = rows.map(resultOf);
    answer(null, isBatch ? { results } : results[0]);
  },
});
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  serving(port);
});

function add(name: string, implementation: UntypedServiceImplementation): void {
  const definition = contract[name];
  if (definition === undefined || !isService(definition)) throw new Error(`no ${name}`);
  server.addService(definition, implementation);
}

function isService(definition: AnyDefinition): definition is ServiceDefinition {
  return !("format" in definition);
}

function workflowOf(row: WorkflowRow) {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    status: workflowStatuses[row.status],
    encrypted_data: row.encrypted_data,
    created_at: timestampOf(row.created_us),
    updated_at: timestampOf(row.updated_us),
    agent_id: row.agent_id,
    allow_public: row.allow_public === 1,
  };
}

function recordDraft(record: PushRecord) {
  return {
    type: record.type,
    entityId: record.entity_id,
    version: record.version,
    encryptedData: record.encrypted_data,
  };
}

function resultOf(row: RecordRow) {
  return {
    status: row.isNew ? statuses.created : statuses.updated,
    record: {
      type: row.type,
      entity_id: row.entityId,
      version: row.version,
      revision: row.revision,
      cursor: row.seq,
      agent_id: row.agentId,
      created_at: timestampOf(row.createdUs),
      updated_at: timestampOf(row.updatedUs),
    },
  };
}

function timestampOf(us: number) {
  const seconds = Math.floor(us / 1e6);
  return { seconds, nanos: (us - seconds * 1e6) * 1000 };
}
