import {
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  isReflectMessage,
  type ReflectMessage,
  reflect,
  scalarZeroValue,
} from "@bufbuild/protobuf/reflect";
import { type Duration, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  FieldRulesSchema,
  field as fieldOption,
  Ignore,
  MessageRulesSchema,
  message as messageOption,
  oneof as oneofOption,
  type Rule,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { compileCel } from "./cel-check.ts";

/**
 * True: the value keeps all its rules. False: it may break one, and protovalidate is to say which.
 * A check may doubt what is good, as it does a name whose characters would have to be counted, and
 * never passes what is not.
 */
export type Check<V = never> = (value: V) => boolean;

/** Turns the rules of a message into one plain function. A rule it does not know is a doubt. */
export function compileRules(schema: DescMessage): Check<Message> {
  return all(checksOfMessage(schema, []));
}

const doubt = () => false;

function all(checks: readonly Check[]): Check<unknown> {
  const list = checks as readonly Check<unknown>[];
  const [first, ...others] = list;
  if (first === undefined) return () => true;
  if (others.length === 0) return first;
  return (value) => {
    for (const check of list) if (!check(value)) return false;
    return true;
  };
}

type Path = readonly DescMessage[];

/** None for a message without rules. */
function checksOfMessage(schema: DescMessage, path: Path): readonly Check[] {
  if (path.includes(schema)) return [doubt];
  const rules = getOption(schema, messageOption);
  return [
    ...schema.fields.flatMap((field) => checksOfField(field, [...path, schema])),
    ...schema.oneofs.filter((oneof) => getOption(oneof, oneofOption).required).map(() => doubt),
    ...rulesOf(reflect(MessageRulesSchema, rules)).flatMap(({ name }) =>
      name === "cel" ? rules.cel.map((rule) => celCheck(rule, schema)) : [doubt],
    ),
  ];
}

/** Of the message that has the field. */
function checksOfField(field: DescField, path: Path): readonly Check[] {
  const rules = getOption(field, fieldOption);
  if (rules.ignore === Ignore.ALWAYS) return [];
  const checks = checksOfValue(field, { rules, path });
  if (checks.length === 0 && !rules.required) return [];
  if (field.oneof !== undefined) return [doubt];
  const { localName } = field;
  const check = all(checks);
  const { required } = rules;
  if (!required && !mayBeAbsent(field, rules)) {
    return [(message: Record<string, unknown>) => check(message[localName])];
  }
  const isUnset = unsetTest(field);
  return [
    (message: Record<string, unknown>) => {
      const value = message[localName];
      return isUnset(value) ? !required : check(value);
    },
  ];
}

/** Whether the rules of the field's value do not hold while it is unset. */
function mayBeAbsent(field: DescField, { ignore }: FieldRules): boolean {
  return field.presence !== FeatureSet_FieldPresence.IMPLICIT || ignore === Ignore.IF_ZERO_VALUE;
}

function unsetTest(field: DescField): Check<unknown> {
  if (field.fieldKind === "list") return (items) => (items as readonly unknown[]).length === 0;
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return (value) => value === undefined;
  const type = field.fieldKind === "scalar" ? field.scalar : ScalarType.INT32;
  if (type === ScalarType.BYTES) return (bytes) => (bytes as Uint8Array).length === 0;
  const zero = scalarZeroValue(type, false);
  return (value) => value === zero;
}

interface Within {
  readonly rules: FieldRules;
  readonly path: Path;
}

function checksOfValue(field: DescField, { rules, path }: Within): readonly Check[] {
  switch (field.fieldKind) {
    case "scalar":
      return checksOfRules(rules, field.scalar);
    case "enum":
      return checksOfRules(rules, field.enum);
    case "message":
      return [...checksOfMessage(field.message, path), ...checksOfRules(rules, field.message)];
    case "list":
      return [...checksOfRules(rules), ...checksOfItems(field, { rules, path })];
    case "map":
      return [doubt];
  }
}

function checksOfItems(
  list: DescField & { fieldKind: "list" },
  { rules, path }: Within,
): readonly Check[] {
  const items = rules.type.case === "repeated" ? rules.type.value.items : undefined;
  if (items !== undefined && items.ignore !== Ignore.UNSPECIFIED) return [doubt];
  const subject = list.listKind === "scalar" ? list.scalar : (list.enum ?? list.message);
  const checks = [
    ...(list.listKind === "message" ? checksOfMessage(list.message, path) : []),
    ...(items === undefined ? [] : checksOfRules(items, subject)),
  ];
  if (checks.length === 0) return [];
  const check = all(checks);
  return [(values: readonly unknown[]) => values.every(check)];
}

/** What a value is: of a scalar type, an enum or a message. A list is none of them. */
type Subject = ScalarType | DescEnum | DescMessage | undefined;

/** Of all the rules of a value but those on when they hold. */
function checksOfRules(rules: FieldRules, subject?: Subject): readonly Check[] {
  return rulesOf(reflect(FieldRulesSchema, rules)).flatMap(({ name, value }): readonly Check[] => {
    if (name === "required" || name === "ignore") return [];
    if (name === "cel") return rules.cel.map((rule) => celCheck(rule, subject));
    const kind = kinds[name];
    if (kind === undefined || !isReflectMessage(value)) return [doubt];
    return rulesOf(value).map((rule) => kind[rule.name]?.(limitOf(rule.value), subject) ?? doubt);
  });
}

/** The rules that are set, by name. One without a name is of a later protovalidate. */
function rulesOf(rules: ReflectMessage): readonly { name: string; value?: unknown }[] {
  return [
    ...rules.sortedFields
      .filter((field) => rules.isSet(field))
      .map((field) => ({ name: field.name, value: rules.get(field) })),
    ...(rules.getUnknown() ?? []).map(() => ({ name: "" })),
  ];
}

function limitOf(value: unknown): never {
  return (isReflectMessage(value) ? value.message : value) as never;
}

function celCheck({ expression }: Rule, subject: Subject): Check<unknown> {
  if (subject === undefined) return doubt;
  if (typeof subject !== "number" && subject.kind === "enum") return doubt;
  return compileCel(expression, subject) ?? doubt;
}

type Compile = (limit: never, subject: Subject) => Check;

/** By the kind of a value's rules and the name of the rule (buf/validate/validate.proto). */
const kinds: Readonly<Record<string, Readonly<Record<string, Compile>>>> = {
  string: {
    // A character is one or two units of UTF-16, a unit three bytes of UTF-8 at most.
    min_len(least: bigint) {
      const min = 2 * Number(least) - 1;
      return (text: string) => text.length >= min;
    },
    max_len(most: bigint) {
      const max = Number(most);
      return (text: string) => text.length <= max;
    },
    max_bytes(most: bigint) {
      const max = Number(most);
      return (text: string) => text.length * 3 <= max || Buffer.byteLength(text) <= max;
    },
    pattern(source: string) {
      const pattern = new RegExp(source, "u");
      return (text: string) => pattern.test(text);
    },
    not_contains: (part: string) => (text: string) => !text.includes(part),
    not_in(texts: Iterable<string>) {
      const refused = new Set(texts);
      return (text: string) => !refused.has(text);
    },
  },
  int32: { gte: (least: number) => (value: number) => value >= least },
  int64: {
    gte: (least: bigint) => (value: bigint) => value >= least,
    lte: (most: bigint) => (value: bigint) => value <= most,
  },
  enum: {
    in(numbers: Iterable<number>) {
      const taken = new Set(numbers);
      return (number: number) => taken.has(number);
    },
    defined_only(isOn: boolean, subject) {
      if (!isOn || typeof subject !== "object" || subject.kind !== "enum") return doubt;
      const defined = new Set(subject.values.map(({ number }) => number));
      return (number: number) => defined.has(number);
    },
  },
  repeated: {
    min_items(least: bigint) {
      const min = Number(least);
      return (items: readonly unknown[]) => items.length >= min;
    },
    max_items(most: bigint) {
      const max = Number(most);
      return (items: readonly unknown[]) => items.length <= max;
    },
    // Those of the items stand beside these.
    items: () => () => true,
  },
  duration: {
    gt: (least: Duration) => (value: Duration) => isPlain(value) && compare(value, least) > 0,
    gte: (least: Duration) => (value: Duration) => isPlain(value) && compare(value, least) >= 0,
  },
};

function isPlain({ seconds, nanos }: Duration): boolean {
  return seconds >= 0n && nanos >= 0 && nanos < 1_000_000_000;
}

function compare(a: Duration, b: Duration): number {
  if (a.seconds === b.seconds) return a.nanos - b.nanos;
  return a.seconds > b.seconds ? 1 : -1;
}
