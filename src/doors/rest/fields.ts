import type { FieldViolation } from "../../domain/errors.ts";
import { problemOfJson, problemOfString } from "../../domain/json-text.ts";
import { durationOf } from "./durations.ts";

/** A duration as a message of the contract holds it. */
interface DurationInit {
  readonly seconds: bigint;
  readonly nanos: number;
}

const int32Max = 2 ** 31 - 1;

/**
 * Reads the named values of a JSON body or a query, each by its type. What has another type is
 * noted and left out, so that one answer names everything that is wrong. Absent and null are alike.
 */
export class Fields {
  readonly problems: FieldViolation[];
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #prefix: string;

  constructor(values: Readonly<Record<string, unknown>>, problems: FieldViolation[], prefix = "") {
    this.#values = values;
    this.problems = problems;
    this.#prefix = prefix;
  }

  text(name: string): string | undefined {
    const text = this.#read(name, "must be a string", asText);
    return this.#unlessProblem(name, text, problemOfString);
  }

  flag(name: string): boolean | undefined {
    return this.#read(name, "must be true or false", asFlag);
  }

  /** A whole number for an int32: above that range it is as good as the largest. */
  whole(name: string): number | undefined {
    const value = this.#read(name, "must be a whole number", asWhole);
    return value === undefined ? undefined : Math.max(-1, Math.min(value, int32Max));
  }

  /** A whole number for an int64 that JavaScript can hold exactly. */
  whole64(name: string): bigint | undefined {
    const value = this.#read(name, "must be a whole number from 0 to 2^53 - 1", asWhole);
    return value === undefined ? undefined : BigInt(value);
  }

  duration(name: string): DurationInit | undefined {
    return this.#read(name, 'must be seconds, like 1.5 or "1.5s"', durationOf);
  }

  texts(name: string): string[] | undefined {
    const texts = this.#read(name, "must be an array of strings", asTexts);
    return this.#unlessProblem(name, texts, problemOfJson);
  }

  /** Any JSON value, as JSON text. */
  json(name: string): string | undefined {
    const value = this.#unlessProblem(name, this.#values[name], problemOfJson);
    return value === undefined ? undefined : JSON.stringify(value);
  }

  /** The fields of an object. */
  group(name: string): Fields | undefined {
    const values = this.#read(name, "must be a JSON object", (value) =>
      isObject(value) ? value : undefined,
    );
    return values && new Fields(values, this.problems, `${this.#prefix}${name}.`);
  }

  /** The fields of each object of an array. */
  groups(name: string): Fields[] | undefined {
    const items = this.#read(name, "must be an array of JSON objects", (value) =>
      Array.isArray(value) && value.every(isObject) ? value : undefined,
    );
    return items?.map(
      (values, i) => new Fields(values, this.problems, `${this.#prefix}${name}[${i}].`),
    );
  }

  #unlessProblem<T>(
    name: string,
    value: T | undefined,
    problemOf: (value: T) => string | null,
  ): T | undefined {
    const message = value === undefined ? null : problemOf(value);
    if (message === null) return value;
    this.problems.push({ field: `${this.#prefix}${name}`, message });
    return undefined;
  }

  #read<T>(name: string, message: string, as: (value: unknown) => T | undefined): T | undefined {
    const value = this.#values[name];
    if (value === undefined || value === null) return undefined;
    const read = as(value);
    if (read === undefined) this.problems.push({ field: `${this.#prefix}${name}`, message });
    return read;
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function asTexts(value: unknown): string[] | undefined {
  const isTexts = Array.isArray(value) && value.every((item) => typeof item === "string");
  return isTexts ? value : undefined;
}

/** A query has words only. */
function asFlag(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (value === "true") return true;
  return value === "false" ? false : undefined;
}

function asWhole(value: unknown): number | undefined {
  const number = typeof value === "string" && /^-?\d{1,20}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isInteger(number) && Math.abs(number) <= 1e20
    ? number
    : undefined;
}
