// The plain Connect adapter for Node on an HTTP/2 server, with no interceptor.
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  type PushRecord,
  type PushResultSchema,
  PushStatus,
} from "../../gen/sealflow/v1/record_pb.ts";
import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import {
  type WorkflowSchema,
  WorkflowService,
  WorkflowStatus,
} from "../../gen/sealflow/v1/workflow_pb.ts";
import { readArguments, serving } from "./arguments.ts";
import type { RecordDraft, RecordRow, WorkflowRow } from "./tables.ts";

const statuses = {
  draft: WorkflowStatus.DRAFT,
  running: WorkflowStatus.RUNNING,
  completed: WorkflowStatus.COMPLETED,
  failed: WorkflowStatus.FAILED,
} as const;

const { tables } = readArguments();
const adapter = connectNodeAdapter({
  routes(router) {
    router.service(WorkflowService, {
      getWorkflow({ id }) {
        const row = tables.getWorkflow(id);
        if (row === undefined) throw new ConnectError("Workflow not found", Code.NotFound);
        return workflowOf(row);
      },
      createWorkflow({ name, description, encryptedData }) {
        return workflowOf(tables.createWorkflow({ name, description, encryptedData }));
      },
    });
    router.service(SyncService, {
      pushState(request) {
        const isBatch = request.records.length > 0;
        const drafts = isBatch ? request.records.map(recordDraft) : [recordDraft(request)];
        const results = tables.pushRecords(drafts).map(resultOf);
        return isBatch ? { results } : { ...results[0] };
      },
    });
  },
});
const server = createServer(adapter).listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (isBound(address)) serving(address.port);
});

function isBound(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}

function workflowOf(row: WorkflowRow): MessageInitShape<typeof WorkflowSchema> {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    status: statuses[row.status],
    encryptedData: row.encrypted_data ?? "",
    createdAt: timestampOf(row.created_us),
    updatedAt: timestampOf(row.updated_us),
    agentId: row.agent_id,
    allowPublic: row.allow_public === 1,
  };
}

type Pushed = Pick<PushRecord, "type" | "entityId" | "version" | "encryptedData">;

function recordDraft({ type, entityId, version, encryptedData }: Pushed): RecordDraft {
  return { type, entityId, version, encryptedData };
}

function resultOf(
  row: RecordRow,
): Pick<MessageInitShape<typeof PushResultSchema>, "status" | "record"> {
  return {
    status: row.isNew ? PushStatus.CREATED : PushStatus.UPDATED,
    record: {
      type: row.type,
      entityId: row.entityId,
      version: row.version,
      revision: BigInt(row.revision),
      cursor: BigInt(row.seq),
      agentId: row.agentId,
      createdAt: timestampOf(row.createdUs),
      updatedAt: timestampOf(row.updatedUs),
    },
  };
}

function timestampOf(us: number) {
  const seconds = Math.floor(us / 1e6);
  return { seconds: BigInt(seconds), nanos: (us - seconds * 1e6) * 1000 };
}
