import { parse } from "@bufbuild/cel";
import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";

/** What `this` is in an expression: a message, or the value of a field of this type. */
export type CelSubject = DescMessage | ScalarType;

/** Whether a subject keeps a rule. */
export type CelCheck = (self: unknown) => boolean;

/**
 * Turns the CEL expression of a rule (cel.dev) into a function. A rule is kept when its expression
 * is true, or the empty text. Undefined for an expression with more in it than comparisons, logic,
 * `size`, `bytes`, `has` and `matches`.
 */
export function compileCel(expression: string, subject: CelSubject): CelCheck | undefined {
  const term = compile(parse(expression).expr, subject);
  if (term?.type === "bool") return term.of as CelCheck;
  if (term?.type === "string") return (self) => term.of(self) === "";
  return undefined;
}

type Expr = ReturnType<typeof parse>["expr"];

/** A part of an expression: its type, and its value for a subject. Bytes are held as their text. */
interface Term {
  readonly type: "bool" | "string" | "bytes" | "int" | "list";
  readonly of: (self: unknown) => unknown;
  /** Of a literal. */
  readonly constant?: unknown;
}

function compile({ exprKind }: Expr, subject: CelSubject): Term | undefined {
  switch (exprKind.case) {
    case "constExpr":
      return literal(exprKind.value.constantKind.value);
    case "identExpr":
      return exprKind.value.name === "this" && subject === ScalarType.STRING
        ? { type: "string", of: (self) => self }
        : undefined;
    case "selectExpr":
      return select(exprKind.value, subject);
    case "callExpr": {
      const { target, args, function: name } = exprKind.value;
      const terms = (target === undefined ? args : [target, ...args]).map((arg) =>
        compile(arg, subject),
      );
      return terms.every((term) => term !== undefined) ? call(name, terms) : undefined;
    }
    default:
      return undefined;
  }
}

function literal(value: unknown): Term | undefined {
  if (typeof value === "string") return { type: "string", of: () => value, constant: value };
  if (typeof value === "boolean") return { type: "bool", of: () => value };
  if (typeof value !== "bigint") return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? { type: "int", of: () => number } : undefined;
}

type Select = Extract<Expr["exprKind"], { case: "selectExpr" }>["value"];

/** `this.field`, or `has(this.field)`. */
function select({ operand, field, testOnly }: Select, subject: CelSubject): Term | undefined {
  const isOfThis = operand?.exprKind.case === "identExpr" && operand.exprKind.value.name === "this";
  if (!isOfThis || typeof subject === "number") return undefined;
  const desc = subject.fields.find(({ name }) => name === field);
  if (desc === undefined || desc.oneof !== undefined) return undefined;
  const of = (self: unknown) => (self as Message & Record<string, unknown>)[desc.localName];
  if (testOnly) {
    return hasPresence(desc) ? { type: "bool", of: (self) => of(self) !== undefined } : undefined;
  }
  const type = typeOf(desc);
  return type === undefined || hasPresence(desc) ? undefined : { type, of };
}

/** Whether the field is undefined until it is set. */
function hasPresence(desc: DescField): boolean {
  return desc.fieldKind === "message" || desc.proto.proto3Optional;
}

function typeOf(desc: DescField): Term["type"] | undefined {
  if (desc.fieldKind === "list") return "list";
  if (desc.fieldKind !== "scalar") return undefined;
  if (desc.scalar === ScalarType.STRING) return "string";
  return desc.scalar === ScalarType.BOOL ? "bool" : undefined;
}

function call(name: string, terms: readonly Term[]): Term | undefined {
  const signature = `${name} ${terms.map(({ type }) => type).join(" ")}`;
  const [a, b, c] = terms as [Term, Term, Term];
  switch (signature) {
    case "!_ bool":
      return { type: "bool", of: (self) => !a.of(self) };
    case "_&&_ bool bool":
      return { type: "bool", of: (self) => a.of(self) && b.of(self) };
    case "_||_ bool bool":
      return { type: "bool", of: (self) => a.of(self) || b.of(self) };
    case "_?_:_ bool bool bool":
    case "_?_:_ bool string string":
      return { type: b.type, of: (self) => (a.of(self) ? b.of(self) : c.of(self)) };
    case "_==_ string string":
    case "_==_ int int":
      return { type: "bool", of: (self) => a.of(self) === b.of(self) };
    case "_!=_ string string":
    case "_!=_ int int":
      return { type: "bool", of: (self) => a.of(self) !== b.of(self) };
    case "_>_ int int":
      return { type: "bool", of: (self) => (a.of(self) as number) > (b.of(self) as number) };
    case "_<=_ int int":
      return { type: "bool", of: (self) => (a.of(self) as number) <= (b.of(self) as number) };
    case "size list":
      return { type: "int", of: (self) => (a.of(self) as readonly unknown[]).length };
    case "bytes string":
      return { type: "bytes", of: a.of };
    case "size bytes":
      return { type: "int", of: (self) => Buffer.byteLength(a.of(self) as string) };
    case "matches string string": {
      if (typeof b.constant !== "string") return undefined;
      const pattern = new RegExp(b.constant, "u");
      return { type: "bool", of: (self) => pattern.test(a.of(self) as string) };
    }
    default:
      return undefined;
  }
}
