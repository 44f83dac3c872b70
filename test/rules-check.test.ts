import {
  create,
  createFileRegistry,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  setExtension,
} from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  FieldDescriptorProto_Type,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  OneofOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import {
  FieldRulesSchema,
  field as fieldRules,
  OneofRulesSchema,
  oneof as oneofRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AgentService } from "../gen/sealflow/v1/agent_pb.ts";
import { PushStateRequestSchema } from "../gen/sealflow/v1/record_pb.ts";
import { SyncService } from "../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../gen/sealflow/v1/workflow_pb.ts";
import { compileCel } from "../src/calls/cel-check.ts";
import { compileRules } from "../src/calls/rules-check.ts";

const requests = [WorkflowService, AgentService, SyncService]
  .flatMap(({ methods }) => methods.map(({ input }) => input))
  .map((schema) => [schema.name, schema] as const);

const validator = createValidator({
  regexMatch: (pattern, text) => new RegExp(pattern, "u").test(text),
});

/** What the fields of a message are made of: much that is good, and what is at and over limits. */
interface Values {
  readonly texts: fc.Arbitrary<string>;
  readonly durations: fc.Arbitrary<Duration>;
}

const goodTexts = fc.constantFrom("a", "w_1", "1.2.3-rc.1", "v1", "2026.01.05");
const sizes = [63, 64, 65, 128, 129, 200, 201, 256, 257, 1024, 1025, 4096, 4097, 8192, 8193];
const largeSizes = [32_768, 32_769, 262_144, 262_145, 1_048_576, 1_048_577];

function ofSize(letters: readonly string[], counts: readonly number[]): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...letters), fc.constantFrom(...counts))
    .map(([letter, count]) => letter.repeat(count));
}

const asciiTexts = fc.oneof(
  { arbitrary: goodTexts, weight: 12 },
  fc.constantFrom("", "register", "AGENT_LOST", "1.2.3.4", "V1", "a\0", "\n"),
  ofSize(["x", "1"], [...sizes, ...largeSizes]),
  fc.string({ unit: "binary-ascii", maxLength: 70 }),
);

const longs = fc.constantFrom(0n, 1n, 5n, 6n, 2n ** 53n - 1n, 2n ** 53n, -1n, -(2n ** 63n));
const ints = fc.constantFrom(2, 3, 7, 8, 9, 1, 0, 100, -1, 2 ** 31 - 1, -(2 ** 31));
const nanos = fc.constantFrom(0, 1, 999_999_999);

function durations(secondsOf: fc.Arbitrary<bigint>, nanosOf: fc.Arbitrary<number>) {
  return fc
    .tuple(secondsOf, nanosOf)
    .map(([seconds, rest]) => create(DurationSchema, { seconds, nanos: rest }));
}

/** What is judged the same by both. */
const plain: Values = {
  texts: asciiTexts,
  durations: durations(
    longs.filter((seconds) => seconds >= 0n),
    nanos,
  ),
};

const any: Values = {
  texts: fc.oneof(
    asciiTexts,
    ofSize(["é", "\u2028", "🌱", "\ud800"], [...sizes, 349_525, 349_526, 524_288, 524_289]),
    fc.string({ unit: "binary", maxLength: 70 }),
  ),
  durations: durations(longs, fc.oneof(nanos, fc.constantFrom(-1, -1_500_000_000, 2_000_000_000))),
};

function messages(schema: DescMessage, values: Values): fc.Arbitrary<Message> {
  if (schema.typeName === DurationSchema.typeName) return values.durations;
  const fields = schema.fields.map((field) => [field.localName, valuesOf(field, values)] as const);
  return fc
    .record(Object.fromEntries(fields), { requiredKeys: [] })
    .map((record) => Object.assign(create(schema), record));
}

function valuesOf(field: DescField, values: Values): fc.Arbitrary<unknown> {
  if (field.fieldKind === "message") return messages(field.message, values);
  if (field.fieldKind === "scalar") return scalars(field.scalar, values);
  if (field.fieldKind !== "list") return ints;
  const itemsOf = (from: Values) =>
    field.listKind === "message" ? messages(field.message, from) : scalars(field.scalar, from);
  const many = fc
    .tuple(itemsOf({ ...values, texts: goodTexts }), fc.constantFrom(64, 65, 500, 501))
    .map(([item, count]) => Array<unknown>(count).fill(item));
  return fc.oneof({ arbitrary: fc.array(itemsOf(values), { maxLength: 2 }), weight: 4 }, many);
}

function scalars(type: ScalarType | undefined, { texts }: Values): fc.Arbitrary<unknown> {
  if (type === ScalarType.STRING) return texts;
  if (type === ScalarType.BOOL) return fc.boolean();
  return type === ScalarType.INT64 ? longs : ints;
}

describe("the compiled rules", () => {
  test.each(requests)("pass nothing that protovalidate refuses: %s", (_, schema) => {
    const check = compileRules(schema);
    const passes = (message: Message) => {
      if (check(message)) expect(validator.validate(schema, message).kind).toBe("valid");
    };
    fc.assert(fc.property(messages(schema, any), passes), { numRuns: 300 });
  });

  test.each(requests)("pass what is plain and good: %s", (_, schema) => {
    const check = compileRules(schema);
    let goodCount = 0;
    const judgesAlike = (message: Message) => {
      const isGood = validator.validate(schema, message).kind === "valid";
      expect(check(message)).toBe(isGood);
      if (isGood) goodCount++;
    };
    fc.assert(fc.property(messages(schema, plain), judgesAlike), { numRuns: 300 });
    expect(goodCount).toBeGreaterThan(0);
  });

  test.each(["Bytes", "Choice"] as const)("do not pass %s that are required and absent", (name) => {
    const schema = demanding(name);
    const message = create(schema);
    expect(validator.validate(schema, message).kind).toBe("invalid");
    expect(compileRules(schema)(message)).toBe(false);
  });
});

/** `Bytes`, whose bytes must be there; `Choice`, one of whose choices must. */
function demanding(name: "Bytes" | "Choice"): DescMessage {
  const { BYTES, STRING } = FieldDescriptorProto_Type;
  const isRequired = create(FieldOptionsSchema);
  setExtension(isRequired, fieldRules, create(FieldRulesSchema, { required: true }));
  const isOneOf = create(OneofOptionsSchema);
  setExtension(isOneOf, oneofRules, create(OneofRulesSchema, { required: true }));
  const file = create(FileDescriptorProtoSchema, {
    name: "demanding.proto",
    syntax: "proto3",
    messageType: [
      { name: "Bytes", field: [{ name: "b", number: 1, type: BYTES, options: isRequired }] },
      {
        name: "Choice",
        field: [{ name: "s", number: 1, type: STRING, oneofIndex: 0 }],
        oneofDecl: [{ name: "choice", options: isOneOf }],
      },
    ],
  });
  const registry = createFileRegistry(file, () => undefined);
  const schema = registry.getMessage(name);
  if (schema === undefined) throw new Error(`no ${name}`);
  return schema;
}

describe("an expression of CEL", () => {
  test.each([
    "this.records.all(r, r.type != '')",
    "this.type.startsWith('a')",
    "this.expected_revision > 1",
    "this.type.size() > 1",
    "this.type + 'b'",
    "this",
    "1",
  ])("that is more than the contract needs is left to protovalidate: %s", (expression) => {
    expect(compileCel(expression, PushStateRequestSchema)).toBeUndefined();
  });
});
