import type { DescMessage, Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { type FieldViolation, ServiceError } from "../domain/errors.ts";
import { type Check, compileRules } from "./rules-check.ts";

/**
 * Holds a message against the rules of the contract. Throws VALIDATION_ERROR with all it breaks,
 * after the `problems` that its door met already; a field is named once.
 */
export type Validate = (
  schema: DescMessage,
  message: Message,
  problems?: readonly FieldViolation[],
) => void;

export function createValidate(): Validate {
  // The contract's patterns are linear, so the platform's RegExp may run them.
  const patterns = new Map<string, RegExp>();
  const validator = createValidator({
    regexMatch(pattern, text) {
      const known = patterns.get(pattern) ?? new RegExp(pattern, "u");
      patterns.set(pattern, known);
      return known.test(text);
    },
  });
  const checks = new Map<DescMessage, Check<Message>>();
  return (schema, message, problems = []) => {
    const check = checks.get(schema) ?? compileRules(schema);
    checks.set(schema, check);
    if (problems.length === 0 && check(message)) return;
    const result = validator.validate(schema, message);
    if (result.kind === "error") throw result.error;
    const fields = new Map(problems.map((problem) => [snakePath(problem.field), problem]));
    for (const violation of (result.violations ?? []).map(toFieldViolation)) {
      if (!fields.has(violation.field)) fields.set(violation.field, violation);
    }
    if (fields.size > 0) throw brokenRules([...fields.values()]);
  };
}

/** One error for all the rules that a request breaks. */
function brokenRules(fields: readonly FieldViolation[]): ServiceError {
  const [first] = fields;
  const others = fields.length > 1 ? ` (and ${fields.length - 1} more)` : "";
  const message = first === undefined ? "The request is not valid" : `${textOf(first)}${others}`;
  return new ServiceError("VALIDATION_ERROR", message, { fields });
}

/** A path as the contract spells it. */
function snakePath(path: string): string {
  return path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function textOf({ field, message }: FieldViolation): string {
  return field === "" ? message : `${field} ${message}`;
}

function toFieldViolation(violation: Violation): FieldViolation {
  return { field: fieldOf(violation), message: wordsOf(violation) };
}

/** The first word of these rule ids is a type, not the field that a spanning rule is about. */
const typeWords = new Set(["string", "enum", "int32", "int64", "repeated", "duration"]);

/** A rule that spans fields has no field of its own: its id begins with the one it is about. */
function fieldOf({ field, ruleId }: Violation): string {
  const path = pathToString(field);
  const last = field.at(-1);
  if (last !== undefined && last.kind === "field") return path;
  const about = /^([a-z_]+)[.]/.exec(ruleId)?.[1];
  if (about === undefined || typeWords.has(about)) return path;
  return path === "" ? about : `${path}.${about}`;
}

function wordsOf({ message, ruleId }: Violation): string {
  if (ruleId === "required") return "is required";
  if (ruleId === "string.not_contains") return "must not hold NUL";
  return message.replaceAll("\0", "NUL");
}
