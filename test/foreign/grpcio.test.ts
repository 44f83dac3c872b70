import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../doors/server.ts";
import { writeDescriptors } from "./buf.ts";
import { pythonPath } from "./debian.ts";

const run = promisify(execFile);
const client = fileURLToPath(new URL("./grpcio_client.py", import.meta.url));

/** The reason and more of an error that travelled in `grpc-status-details-bin`. */
const info = (reason: string, metadata: Record<string, string> = {}) => ({
  "google.rpc.ErrorInfo": expect.objectContaining({
    reason,
    domain: "sealflow",
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  }),
});

describe.each([
  ["the lane", { grpcLane: true }],
  ["the Connect adapter", { grpcLane: false }],
])("a Python program with grpcio, through %s", (_, settings) => {
  let server: TestServer;
  let seen: Record<string, unknown>;
  beforeAll(async () => {
    server = await startTestServer(settings);
    const descriptors = await writeDescriptors(server.dataDir);
    const address = new URL(server.grpcUrl).host;
    const token = await server.token({ sub: "me" });
    const { stdout } = await run(pythonPath, [client, address, token, descriptors]);
    seen = JSON.parse(stdout);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  const outputOf = (rpc: string): unknown => JSON.parse((seen[rpc] as { output: string }).output);

  test("makes, reads and lists workflows", () => {
    expect(seen["CreateWorkflow"]).toMatchObject({
      name: "Count",
      status: "WORKFLOW_STATUS_DRAFT",
    });
    expect(seen["GetWorkflow"]).toBe(1024 * 1024);
    expect(seen["ListWorkflows"]).toMatchObject({ workflows: [{ name: "Count" }], total: 1 });
  });

  test("registers, reads and lists agents", () => {
    const agent = { id: "counter", capabilities: ["text"], status: "AGENT_STATUS_ACTIVE" };
    expect(seen["RegisterAgent"]).toMatchObject(agent);
    expect(seen["GetAgent"]).toMatchObject(agent);
    expect(seen["ListAgents"]).toMatchObject({ agents: [agent], total: 1 });
  });

  test("executes a workflow and an agent, and is that agent", () => {
    const result = { status: "EXECUTION_STATUS_COMPLETED", agent_id: "counter", attempt: 1 };
    expect(seen["ExecuteWorkflow"]).toMatchObject(result);
    expect(outputOf("ExecuteWorkflow")).toEqual({ words: 6, key: "k" });
    expect(seen["ExecuteAgent"]).toMatchObject(result);
    expect(outputOf("ExecuteAgent")).toEqual({ words: 6, key: "" });
  });

  test("pushes and pulls state, and sees on its stream what another pushed", () => {
    const note = { type: "note", entity_id: "n1", encrypted_data: "c2VhbGVk", version: "1.0.0" };
    expect(seen["PushState"]).toMatchObject({ status: "PUSH_STATUS_CREATED" });
    expect(seen["PullState"]).toMatchObject({ records: [{ ...note, agent_id: "laptop" }] });
    expect(seen["Subscribe"]).toMatchObject([
      { kind: "UPDATE_KIND_READY" },
      { kind: "UPDATE_KIND_UP_TO_DATE" },
      { kind: "UPDATE_KIND_STATE_UPSERTED", record: { ...note, agent_id: "laptop" } },
    ]);
  });

  test("reads the record that a push has met", () => {
    expect(seen["conflict"]).toMatchObject({
      code: "ABORTED",
      details: {
        ...info("SYNC_CONFLICT"),
        "sealflow.v1.SyncConflict": {
          reason: "SYNC_CONFLICT_REASON_SAME_VERSION",
          current: { entity_id: "n1", encrypted_data: "c2VhbGVk", revision: "1" },
        },
      },
    });
  });

  test("is not given more details than it can take", () => {
    expect(seen["conflicts"]).toMatchObject({
      code: "ABORTED",
      details: {
        ...info("SYNC_CONFLICT"),
        "sealflow.v1.SyncConflict": { conflicts: expect.any(Array), truncated: true },
      },
    });
  });

  test("reads why a call is refused", () => {
    expect(seen["no workflow"]).toMatchObject({
      code: "NOT_FOUND",
      details: info("WORKFLOW_NOT_FOUND", { workflowId: "wf_none" }),
    });
    expect(seen["no agent"]).toMatchObject({
      code: "NOT_FOUND",
      message: "Agent not found",
      details: info("AGENT_NOT_FOUND", { agentId: "nobody" }),
    });
    expect(seen["no name"]).toMatchObject({
      code: "INVALID_ARGUMENT",
      details: {
        ...info("VALIDATION_ERROR"),
        "google.rpc.BadRequest": { field_violations: [{ field: "name" }] },
      },
    });
    expect(seen["no token"]).toMatchObject({
      code: "UNAUTHENTICATED",
      details: info("UNAUTHORIZED"),
    });
  });

  test("is served when it is large, compressed, many at once, late or gone", () => {
    expect(seen["too large"]).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      details: info("PAYLOAD_TOO_LARGE"),
    });
    expect(seen["nobody, too large"]).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(seen["many"]).toBe(500);
    expect(seen["late"]).toBe("DEADLINE_EXCEEDED");
    expect(seen["cancelled"]).toBe(true);
    expect(seen["compressed"]).toBe(1024 * 1024);
  });
});
