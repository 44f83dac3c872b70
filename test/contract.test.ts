import { readFile } from "node:fs/promises";
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescService,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code } from "@connectrpc/connect";
import { describe, expect, expectTypeOf, test } from "vitest";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { AgentSchema, AgentService } from "../gen/sealflow/v1/agent_pb.ts";
import { type ErrorReason, ErrorReasonSchema } from "../gen/sealflow/v1/errors_pb.ts";
import { SyncService } from "../gen/sealflow/v1/sync_pb.ts";
import {
  ExecuteWorkflowRequestSchema,
  GetWorkflowRequestSchema,
  WorkflowSchema,
  WorkflowService,
  WorkflowStatusSchema,
} from "../gen/sealflow/v1/workflow_pb.ts";
import { toConnectError } from "../src/calls/connect-error.ts";
import { wireErrors } from "../src/calls/wire.ts";
import { reasonOf } from "../src/client/error-reason.ts";
import { type Reason, ServiceError } from "../src/domain/errors.ts";

const services: readonly DescService[] = [WorkflowService, AgentService, SyncService];
const reasons = Object.keys(wireErrors) as Reason[];

describe("the interface that was asked for", () => {
  const workflow = {
    id: "1 string",
    name: "2 string",
    description: "3 string",
    status: "4 sealflow.v1.WorkflowStatus",
    encrypted_data: "5 string",
    created_at: "6 google.protobuf.Timestamp",
    updated_at: "7 google.protobuf.Timestamp",
  };
  const agent = {
    id: "1 string",
    name: "2 string",
    capabilities: "3 repeated string",
    status: "4 sealflow.v1.AgentStatus",
    is_public: "5 bool",
  };

  test.each([
    [WorkflowSchema, workflow],
    [AgentSchema, agent],
    [GetWorkflowRequestSchema, { id: "1 string" }],
    [ExecuteWorkflowRequestSchema, { id: "1 string", input: "2 string" }],
  ] as [DescMessage, Record<string, string>][])(
    "%s has its fields; ours begin at 20",
    (message, asked) => {
      const theirs = message.fields.filter((field) => field.number < 20);
      expect(Object.fromEntries(theirs.map((field) => [field.name, shapeOf(field)]))).toEqual(
        asked,
      );
    },
  );

  test("WorkflowStatus has its values", () => {
    expect(valuesOf(WorkflowStatusSchema)).toEqual({
      WORKFLOW_STATUS_UNSPECIFIED: 0,
      WORKFLOW_STATUS_DRAFT: 1,
      WORKFLOW_STATUS_RUNNING: 2,
      WORKFLOW_STATUS_COMPLETED: 3,
      WORKFLOW_STATUS_FAILED: 4,
    });
  });

  test.each([
    [WorkflowService, "GetWorkflow", "GetWorkflowRequest", "Workflow"],
    [WorkflowService, "ListWorkflows", "ListWorkflowsRequest", "ListWorkflowsResponse"],
    [WorkflowService, "CreateWorkflow", "CreateWorkflowRequest", "Workflow"],
    [WorkflowService, "ExecuteWorkflow", "ExecuteWorkflowRequest", "ExecutionResult"],
    [AgentService, "GetAgent", "GetAgentRequest", "Agent"],
    [AgentService, "ListAgents", "ListAgentsRequest", "ListAgentsResponse"],
    [AgentService, "RegisterAgent", "RegisterAgentRequest", "Agent"],
    [AgentService, "ExecuteAgent", "ExecuteAgentRequest", "AgentResult"],
    [SyncService, "PushState", "PushStateRequest", "PushStateResponse"],
    [SyncService, "PullState", "PullStateRequest", "PullStateResponse"],
    [SyncService, "Subscribe", "SubscribeRequest", "SyncUpdate"],
  ] as [DescService, string, string, string][])("%s has %s", (service, rpc, request, response) => {
    const method = service.methods.find(({ name }) => name === rpc);
    expect(method?.input.name).toBe(request);
    expect(method?.output.name).toBe(response);
    expect(method?.methodKind).toBe(rpc === "Subscribe" ? "server_streaming" : "unary");
  });

  test("services are three, in the package sealflow.v1", () => {
    expect(services.map(({ typeName }) => typeName)).toEqual([
      "sealflow.v1.WorkflowService",
      "sealflow.v1.AgentService",
      "sealflow.v1.SyncService",
    ]);
  });
});

describe("the strings of a request", () => {
  const strings = requestMessages().flatMap(({ fields }) => fields.filter(isText));

  test("are many: the walk finds those of nested messages too", () => {
    expect(strings.map(String)).toContain("field sealflow.v1.PushRecord.entity_id");
    expect(strings.length).toBeGreaterThan(50);
  });

  test.each(strings)("%s refuses NUL", (field) => {
    expect(hasOption(field, fieldRules)).toBe(true);
    const { type, cel } = getOption(field, fieldRules);
    const own = type.case === "repeated" ? type.value.items?.type : type;
    if (own?.case !== "string") throw new Error("it has no rule of a string");
    // A pattern of ours names the characters that it takes.
    const isRefused =
      own.value.notContains === "\0" ||
      own.value.pattern.startsWith("^[") ||
      cel.some(({ expression }) => expression.includes("matches('^"));
    expect(isRefused).toBe(true);
  });
});

describe("the reasons of errors", () => {
  test("are the same in the contract, the domain and the table of the wires", () => {
    expectTypeOf<Reason>().toEqualTypeOf<Exclude<keyof typeof ErrorReason, "UNSPECIFIED">>();
    expectTypeOf<Reason>().toEqualTypeOf<keyof typeof wireErrors>();
    const names = Object.keys(valuesOf(ErrorReasonSchema));
    expect(names).toEqual(["UNSPECIFIED", ...reasons].map((reason) => `ERROR_REASON_${reason}`));
  });

  test("have in the contract the codes that the wires show", async () => {
    const text = await readFile(
      new URL("../proto/sealflow/v1/errors.proto", import.meta.url),
      "utf8",
    );
    for (const reason of reasons) {
      const before = text.split(` ERROR_REASON_${reason} =`)[0] ?? "";
      const comment = before.slice(before.lastIndexOf("\n\n")).replaceAll(/\s*\/\/\s*/g, " ");
      const { status, code } = wireErrors[reason];
      expect(comment).toContain(` HTTP ${status}`);
      // What only REST can meet names no code there.
      if (!comment.includes("REST only.")) expect(comment).toContain(`, ${grpcName(code)}. Retry:`);
    }
  });

  test.each(reasons)("%s travels as an ErrorInfo that the client reads", (reason) => {
    const error = toConnectError(new ServiceError(reason, "why", { details: { limit: 3 } }));
    expect(error.code).toBe(wireErrors[reason].code);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason, domain: "sealflow", metadata: { limit: "3" } },
    ]);
    expect(reasonOf(error)?.reason).toBe(reason);
  });
});

function shapeOf(field: DescField): string {
  const isList = field.fieldKind === "list";
  const type = field.message?.typeName ?? field.enum?.typeName ?? ScalarType[field.scalar ?? 0];
  return `${field.number} ${isList ? "repeated " : ""}${field.scalar ? String(type).toLowerCase() : type}`;
}

function valuesOf(values: DescEnum): Record<string, number> {
  return Object.fromEntries(values.values.map(({ name, number }) => [name, number]));
}

/** `NotFound` as gRPC spells it. */
function grpcName(code: Code): string {
  const name = Code[code].replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
  return name === "CANCELED" ? "CANCELLED" : name;
}

function isText(field: DescField): boolean {
  const isScalar = field.fieldKind === "scalar" || field.fieldKind === "list";
  return isScalar && field.scalar === ScalarType.STRING;
}

/** All that a client can send: the requests, and the messages of ours inside them. */
function requestMessages(): DescMessage[] {
  const found = new Set<DescMessage>();
  const waiting = services.flatMap(({ methods }) => methods.map(({ input }) => input));
  for (const message of waiting) {
    if (found.has(message) || !message.typeName.startsWith("sealflow.")) continue;
    found.add(message);
    waiting.push(...message.fields.flatMap((field) => field.message ?? []));
  }
  return [...found];
}
