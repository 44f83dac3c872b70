import type { Database, RunResult, Statement } from "better-sqlite3";
import { Column, is, NoopLogger, Param, Placeholder, SQL, sql } from "drizzle-orm";
import {
  BetterSQLite3Database,
  BetterSQLiteSession,
  PreparedQuery,
} from "drizzle-orm/better-sqlite3";
import { NoopCache } from "drizzle-orm/cache/core";
import { type PreparedQueryConfig, SQLiteSyncDialect } from "drizzle-orm/sqlite-core";

/**
 * Drizzle over the connection, with statements that look at their parameters and columns once, when
 * they are prepared. Drizzle's own ask at each run what kind of thing each of them is, which takes
 * longer than SQLite takes to read the row.
 */
export function openDrizzle(connection: Database): BetterSQLite3Database {
  const dialect = new SQLiteSyncDialect();
  const session = new CompiledSession(connection, dialect);
  return new BetterSQLite3Database("sync", dialect, session, undefined);
}

/** Drizzle's relational queries are not used. */
type None = Record<string, never>;
type PrepareArgs = Parameters<BetterSQLiteSession<None, None>["prepareQuery"]>;
type Fields = PrepareArgs[1];
type Config = Omit<PreparedQueryConfig, "run">;
type Values = Readonly<Record<string, unknown>>;
type Row = readonly unknown[];

class CompiledSession extends BetterSQLiteSession<None, None> {
  readonly #connection: Database;

  constructor(connection: Database, dialect: SQLiteSyncDialect) {
    super(connection, dialect, undefined);
    this.#connection = connection;
  }

  override prepareQuery<T extends Config>(...args: PrepareArgs): PreparedQuery<T> {
    return new CompiledQuery(this.#connection.prepare(args[0].sql), args);
  }
}

class CompiledQuery<T extends Config> extends PreparedQuery<T> {
  readonly #statement: Statement;
  readonly #fill: (values: Values) => unknown[];
  /** Undefined: Drizzle's own way is taken. */
  readonly #read: ((row: Row) => unknown) | undefined;

  constructor(statement: Statement, args: PrepareArgs) {
    const [query, fields, method, isArrayMode, mapper, metadata, cacheConfig] = args;
    super(
      statement,
      query,
      new NoopLogger(),
      new NoopCache(),
      metadata,
      cacheConfig,
      fields,
      method,
      isArrayMode,
      mapper,
    );
    this.#statement = statement;
    this.#fill = compileFill(query.params);
    this.#read = mapper === undefined ? compileRead(fields) : undefined;
    if (this.#read !== undefined) statement.raw();
  }

  override run(values: Values = {}): RunResult {
    return this.#statement.run(this.#fill(values));
  }

  override get(values: Values = {}): T["get"] {
    if (this.#read === undefined) return super.get(values);
    const row = this.#statement.get(this.#fill(values)) as Row | undefined;
    return row === undefined ? undefined : this.#read(row);
  }

  override all(values: Values = {}): T["all"] {
    if (this.#read === undefined) return super.all(values);
    return (this.#statement.all(this.#fill(values)) as Row[]).map(this.#read);
  }
}

type Convert = (value: unknown) => unknown;

/** A parameter: the placeholder whose value it takes, or its value. */
type Source =
  | { readonly name: string; readonly encode: Convert | undefined }
  | { readonly value: unknown };

function compileFill(params: readonly unknown[]): (values: Values) => unknown[] {
  const sources = params.map(sourceOf);
  return (values) => {
    return sources.map((source) => {
      if ("value" in source) return source.value;
      const value = values[source.name];
      if (value === undefined) throw new Error(`No value for placeholder "${source.name}"`);
      return value === null || source.encode === undefined ? value : source.encode(value);
    });
  };
}

function sourceOf(param: unknown): Source {
  if (is(param, Placeholder)) return { name: param.name, encode: undefined };
  if (is(param, Param) && is(param.value, Placeholder)) {
    const { encoder, value } = param;
    const isPlain = encoder.mapToDriverValue === Column.prototype.mapToDriverValue;
    return { name: value.name, encode: isPlain ? undefined : (v) => encoder.mapToDriverValue(v) };
  }
  return { value: param };
}

type FieldOf<F> = F extends readonly { readonly field: infer T }[] ? T : never;

/** Undefined for a selection that holds more than columns and plain SQL, side by side. */
function compileRead(fields: Fields = []): ((row: Row) => unknown) | undefined {
  const isPlain = fields.every(({ path, field }) => path.length === 1 && isSimple(field));
  if (fields.length === 0 || !isPlain) return undefined;
  const names = fields.map(({ path }) => path.join());
  const decodes = fields.map(({ field }) => decodeOf(field));
  return (row) => {
    const object: Record<string, unknown> = {};
    for (const [i, name] of names.entries()) {
      const value = row[i];
      const decode = decodes[i];
      object[name] = value === null || decode === undefined ? value : decode(value);
    }
    return object;
  };
}

/** Whether a value is taken as SQLite gives it, or as its column says. */
function isSimple(field: FieldOf<Fields>): boolean {
  const decoder = (of: SQL) => Reflect.get(of, "decoder");
  return is(field, Column) || (is(field, SQL) && decoder(field) === decoder(sql``));
}

function decodeOf(field: FieldOf<Fields>): Convert | undefined {
  if (!is(field, Column)) return undefined;
  if (field.mapFromDriverValue === Column.prototype.mapFromDriverValue) return undefined;
  return (value) => field.mapFromDriverValue(value);
}
