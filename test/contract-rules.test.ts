import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { RegisterAgentRequestSchema as Register } from "../gen/sealflow/v1/agent_pb.ts";
import { GetExecutionRequestSchema } from "../gen/sealflow/v1/execution_pb.ts";
import { PushStateRequestSchema as Push } from "../gen/sealflow/v1/record_pb.ts";
import {
  PullStateRequestSchema as Pull,
  SubscribeRequestSchema as Subscribe,
  UpdateKind,
} from "../gen/sealflow/v1/sync_pb.ts";
import {
  CompleteTaskRequestSchema as Complete,
  FailTaskRequestSchema as Fail,
  HeartbeatTasksRequestSchema as Heartbeat,
  PollTasksRequestSchema as Poll,
} from "../gen/sealflow/v1/task_pb.ts";
import {
  CreateWorkflowRequestSchema as Create,
  ExecuteWorkflowRequestSchema as Execute,
  GetWorkflowRequestSchema as Get,
  ListWorkflowsRequestSchema as List,
  UpdateWorkflowRequestSchema as Update,
  type WorkflowStatus,
} from "../gen/sealflow/v1/workflow_pb.ts";
import { createValidate } from "../src/calls/validate.ts";
import { ServiceError } from "../src/domain/errors.ts";

/** A message, and the fields of it that break a rule; none: it is good. */
interface Case {
  readonly what: string;
  readonly schema: DescMessage;
  readonly message: Message;
  readonly broken: readonly string[];
}

function of<D extends DescMessage>(
  schema: D,
  cases: Record<string, readonly [MessageInitShape<D>, ...(readonly string[])]>,
): Case[] {
  return Object.entries(cases).map(([what, [init, ...broken]]) => {
    return { what, schema, message: create(schema, init), broken };
  });
}

const KiB = 1024;
const MiB = 1024 * KiB;

function s(seconds: number): Duration {
  const whole = Math.trunc(seconds);
  const nanos = Math.round((seconds - whole) * 1e9);
  return create(DurationSchema, { seconds: BigInt(whole), nanos });
}

const workflows: Case[] = [
  ...of(Create, {
    "create, name alone": [{ name: "a" }],
    "create, no name": [{}, "name"],
    "create, name of 200 emoji": [{ name: "🌱".repeat(200) }],
    "create, name of 201": [{ name: "a".repeat(201) }, "name"],
    "create, NUL in the name": [{ name: "a\0" }, "name"],
    "create, description of 4,000": [{ name: "a", description: "d".repeat(4000) }],
    "create, description of 4,001": [{ name: "a", description: "d".repeat(4001) }, "description"],
    "create, payload of 1 MiB": [{ name: "a", encryptedData: "x".repeat(MiB) }],
    "create, payload of a byte more": [
      { name: "a", encryptedData: "x".repeat(MiB + 1) },
      "encrypted_data",
    ],
    "create, payload of 1 MiB and 2 in 2-byte letters": [
      { name: "a", encryptedData: "é".repeat(MiB / 2 + 1) },
      "encrypted_data",
    ],
    "create, key of 8 KiB": [{ name: "a", encryptionKey: "k".repeat(8 * KiB) }],
    "create, key of a byte more": [
      { name: "a", encryptionKey: "k".repeat(8 * KiB + 1) },
      "encryption_key",
    ],
    "create, 64 capabilities": [
      { name: "a", requiredCapabilities: Array<string>(64).fill("gpu/h200:1") },
    ],
    "create, 65 capabilities": [
      { name: "a", requiredCapabilities: Array<string>(65).fill("gpu") },
      "required_capabilities",
    ],
    "create, a capability with a space": [
      { name: "a", requiredCapabilities: ["ok", "not ok"] },
      "required_capabilities[1]",
    ],
    "create, two breaches at once": [{ requestId: "r".repeat(129) }, "name", "request_id"],
  }),
  ...of(Update, {
    "update nothing": [{ id: "w" }],
    "update clears": [
      { id: "w", description: "", encryptionKey: "", agentId: "", requiredCapabilities: {} },
    ],
    "update, name empty": [{ id: "w", name: "" }, "name"],
  }),
  ...of(Get, {
    "get without id": [{}, "id"],
    "get, any form of id": [{ id: "no such/thing ü" }],
    "get, NUL in the id": [{ id: "w\0" }, "id"],
  }),
  ...of(List, {
    "list, limit absent": [{}],
    "list, limit 5000 is taken as 200": [{ limit: 5000 }],
    "list, limit 0": [{ limit: 0 }, "limit"],
    "list, limit -1": [{ limit: -1 }, "limit"],
    "list, a status that is none": [{ status: 9 as WorkflowStatus }, "status"],
  }),
  ...of(Execute, {
    "execute, defaults": [{ id: "w" }],
    "execute, wait 0": [{ id: "w", wait: s(0) }],
    "execute, wait 1 h is taken as 60 s": [{ id: "w", wait: s(3600) }],
    "execute, wait -0.5 s": [{ id: "w", wait: s(-0.5) }, "wait"],
    "execute, time-outs of 0": [
      { id: "w", timeout: s(0), startTimeout: s(0) },
      "timeout",
      "start_timeout",
    ],
    "execute, 0 attempts": [{ id: "w", maxAttempts: 0 }, "max_attempts"],
    "execute, 500 attempts are taken as 100": [{ id: "w", maxAttempts: 500 }],
    "execute, input of 256 KiB": [{ id: "w", input: "1".repeat(256 * KiB) }],
    "execute, input of a byte more": [{ id: "w", input: "1".repeat(256 * KiB + 1) }, "input"],
  }),
  ...of(GetExecutionRequestSchema, {
    "get an execution, wait 30 s": [{ id: "e", wait: s(30) }],
    "get an execution, wait -1 s": [{ id: "e", wait: s(-1) }, "wait"],
  }),
];

const agents: Case[] = [
  ...of(Register, {
    register: [{ id: "Agent.1:a_b-c", type: "worker", capabilities: ["a"] }],
    "register without id": [{}, "id"],
    "register, id with a slash": [{ id: "a/b" }, "id"],
    "register, id of 128": [{ id: "a".repeat(128) }],
    "register, id of 129": [{ id: "a".repeat(129) }, "id"],
    "register the id `register`": [{ id: "register" }, "id"],
    "register, type of 64": [{ id: "a", type: "t".repeat(64) }],
    "register, type of 65": [{ id: "a", type: "t".repeat(65) }, "type"],
  }),
  ...of(Poll, {
    "poll, all absent": [{}],
    "poll, 0 tasks, lease of 4.9 s": [{ maxTasks: 0, lease: s(4.9) }, "max_tasks", "lease"],
    "poll, lease of 5 s": [{ lease: s(5) }],
  }),
  ...of(Heartbeat, {
    "heartbeat for nothing": [{}, "tasks"],
    "heartbeat, progress of 32 KiB": [
      { tasks: [{ taskId: "t", leaseToken: "l", progress: "p".repeat(32 * KiB) }] },
    ],
    "heartbeat, progress of a byte more": [
      { tasks: [{ taskId: "t", leaseToken: "l", progress: "p".repeat(32 * KiB + 1) }] },
      "tasks[0].progress",
    ],
  }),
  ...of(Complete, {
    "complete without token": [{ taskId: "t" }, "lease_token"],
    "complete, output of 1 MiB": [{ taskId: "t", leaseToken: "l", output: "1".repeat(MiB) }],
    "complete, output of a byte more": [
      { taskId: "t", leaseToken: "l", output: "1".repeat(MiB + 1) },
      "output",
    ],
  }),
  ...of(Fail, {
    "fail, nothing said": [{ taskId: "t", leaseToken: "l" }],
    "fail, a code of the server and a long text": [
      {
        taskId: "t",
        leaseToken: "l",
        error: { code: "AGENT_LOST", message: "m".repeat(4 * KiB + 1) },
      },
      "error.code",
      "error.message",
    ],
  }),
];

const one = { type: "note", entityId: "n1", encryptedData: "x", version: "1.0.0" };
const batch = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ ...one, entityId: `n${index}` }));

const pushes: Case[] = of(Push, {
  "push, the four fields": [one],
  "push nothing": [{}, "type", "entity_id", "version", "encrypted_data"],
  "push without data": [{ ...one, encryptedData: "" }, "encrypted_data"],
  "push a tombstone without data": [{ ...one, encryptedData: "", deleted: true }],
  "push a tombstone of 8 KiB": [{ ...one, encryptedData: "x".repeat(8 * KiB), deleted: true }],
  "push a tombstone of a byte more": [
    { ...one, encryptedData: "x".repeat(8 * KiB + 1), deleted: true },
    "encrypted_data",
  ],
  "push, revision -1 expected": [{ ...one, expectedRevision: -1n }, "expected_revision"],
  "push, revision 0 expected": [{ ...one, expectedRevision: 0n }],
  "push 500 records": [{ records: batch(500), atomic: true }],
  "push 501 records": [{ records: batch(501) }, "records"],
  "push both forms": [{ ...one, records: batch(1) }, "records"],
  "push both forms, by a revision of 0": [{ expectedRevision: 0n, records: batch(1) }, "records"],
  "push entities that read alike": [
    {
      records: [
        { ...one, type: "a", entityId: "bc" },
        { ...one, type: "ab", entityId: "c" },
      ],
    },
  ],
  "push a second record with no version and no data": [
    { records: [one, { ...one, entityId: "n2", version: "new", encryptedData: "" }] },
    "records[1].version",
    "records[1].encrypted_data",
  ],
});

const version = (text: string, ...broken: string[]): Case => {
  const message = create(Push, { ...one, version: text });
  return { what: `version ${JSON.stringify(text)}`, schema: Push, message, broken };
};

const versions: Case[] = [
  ...["1", "v2", "1.2", "1.2.3", "v1.0.0-rc.1+build.5", "2026.01.05", "9".repeat(40)].map((text) =>
    version(text),
  ),
  ...["1.2.3.4", "1.", "latest", "1.0.0-", "1.0.0-a..b", "V1", " 1", "1\n", "9".repeat(65)].map(
    (text) => version(text, "version"),
  ),
];

const pulls: Case[] = [
  ...of(Pull, {
    "pull since some milliseconds": [{ since: 1_760_000_000_000n }],
    "pull since 2^53 - 1": [{ since: 2n ** 53n - 1n }],
    "pull since 2^53": [{ since: 2n ** 53n }, "since"],
    "pull since before all": [{ since: -1n }, "since"],
    "pull kinds": [{ kinds: [UpdateKind.STATE_DELETED, UpdateKind.EXECUTION] }],
    "pull a control kind": [{ kinds: [UpdateKind.HEARTBEAT] }, "kinds[0]"],
    "pull an entity id of 257": [{ entityIds: ["e".repeat(257)] }, "entity_ids[0]"],
  }),
  ...of(Subscribe, {
    "subscribe from now": [{}],
    "subscribe, heartbeat of 0.5 s": [{ heartbeat: s(0.5) }, "heartbeat"],
    "subscribe to a control kind": [{ kinds: [UpdateKind.READY] }, "kinds[0]"],
  }),
];

describe("the rules of the contract", () => {
  const validate = createValidate();

  test.each([...workflows, ...agents, ...pushes, ...versions, ...pulls])(
    "$what",
    ({ schema, message, broken }) => {
      expect(brokenFields(() => validate(schema, message))).toEqual(broken);
    },
  );

  test("are told in words that hold no NUL", () => {
    const message = create(Create, { name: "a\0" });
    expect(() => validate(Create, message)).toThrow(/^[^\0]+$/);
  });

  test("come after what the door met already, each field once", () => {
    const problems = [{ field: "requestId", message: "must be a string" }];
    const message = create(Create, { requestId: "r".repeat(129) });
    expect(brokenFields(() => validate(Create, message, problems))).toEqual(["requestId", "name"]);
  });
});

/** The fields that a VALIDATION_ERROR names; none when there is none. */
function brokenFields(run: () => void): readonly string[] {
  try {
    run();
    return [];
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    expect(error.reason).toBe("VALIDATION_ERROR");
    return (error.facts.fields ?? []).map(({ field }) => field);
  }
}
