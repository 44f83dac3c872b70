import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const linesMax = 400;

/** Each part may import those before it. */
const order = [
  "domain",
  "storage",
  "services",
  "calls",
  "doors",
  "config",
  "closers",
  "server",
  "cli",
  "main",
];
/** The server names the services that it serves. */
const knowGen = ["services", "calls", "doors", "server", "client"];
/** What chooses a storage. The others know its port alone. */
const chooseStorage = ["server", "cli"];

interface Import {
  readonly from: string;
  /** A path from the root, or a package as it is named. */
  readonly to: string;
}

const files = await sourceFiles();
const imports = (await Promise.all(files.map(importsOf))).flat();

describe("the house", () => {
  test("is seen by these tests", () => {
    expect(files.length).toBeGreaterThan(100);
    expect(imports).toContainEqual({ from: "src/main.ts", to: "src/cli/run.ts" });
    expect(imports).toContainEqual({ from: "src/server.ts", to: "src/storage/port.ts" });
    expect(new Set(files.map(partOf))).toEqual(new Set([...order, "client"]));
  });

  test("imports what exists", () => {
    const own = imports.filter(({ to }) => to.startsWith("src/"));
    expect(own.filter(({ to }) => !files.includes(to))).toEqual([]);
  });

  test("imports one way", () => {
    expect(imports.filter(isForbidden).map(({ from, to }) => `${from} -> ${to}`)).toEqual([]);
  });

  test.each([
    ["src/domain/a.ts", "src/storage/port.ts"],
    ["src/domain/a.ts", "gen/sealflow/v1/agent_pb.ts"],
    ["src/domain/a.ts", "node:crypto"],
    ["src/domain/a.ts", "jose"],
    ["src/storage/port.ts", "src/storage/sqlite/store.ts"],
    ["src/storage/sqlite/a.ts", "src/storage/postgres/store.ts"],
    ["src/storage/sqlite/a.ts", "gen/sealflow/v1/agent_pb.ts"],
    ["src/storage/sqlite/a.ts", "src/services/call.ts"],
    ["src/services/a.ts", "src/storage/sqlite/store.ts"],
    ["src/services/a.ts", "src/calls/chain.ts"],
    ["src/calls/a.ts", "src/doors/http.ts"],
    ["src/calls/auth/a.ts", "src/config.ts"],
    ["src/doors/rest/a.ts", "src/server.ts"],
    ["src/doors/rest/a.ts", "src/client/client.ts"],
    ["src/client/a.ts", "src/domain/errors.ts"],
    ["src/server.ts", "src/cli/run.ts"],
    ["src/cli/a.ts", "gen/sealflow/v1/agent_pb.ts"],
    ["src/cli/a.ts", "test/doors/server.ts"],
  ])("would not let %s import %s", (from, to) => {
    expect(isForbidden({ from, to })).toBe(true);
  });

  test("has no cycle of imports", () => {
    expect(cyclesOf(imports)).toEqual([]);
    const cycle = [
      { from: "a", to: "b" },
      { from: "b", to: "c" },
      { from: "c", to: "b" },
    ];
    expect(cyclesOf(cycle)).toEqual(["b -> c -> b"]);
  });

  test(`has no file of more than ${linesMax} lines`, async () => {
    const long: string[] = [];
    for (const file of files) {
      const lines = (await readFile(join(root, file), "utf8")).split("\n").length - 1;
      if (lines > linesMax) long.push(`${file}: ${lines}`);
    }
    expect(long).toEqual([]);
  });
});

function isForbidden({ from, to }: Import): boolean {
  const own = partOf(from);
  const isOurs = /^(src|gen|test|tools|demo|bench)\//.test(to);
  if (!isOurs) return own === "domain";
  if (to.startsWith("gen/")) return !knowGen.includes(own);
  if (!to.startsWith("src/")) return true;
  const storage = storageOf(to);
  if (storage !== undefined && storage !== storageOf(from)) return !chooseStorage.includes(own);
  const other = partOf(to);
  if (own === other) return false;
  // Other programs import the client; of ours, the commands do.
  if (own === "client") return true;
  if (other === "client") return own !== "cli";
  return order.indexOf(other) >= order.indexOf(own);
}

/** `src/calls/auth/ttl.ts` is of `calls`, `src/server.ts` of `server`. */
function partOf(file: string): string {
  return file.split("/")[1]?.replace(/\.ts$/, "") ?? "";
}

function storageOf(file: string): string | undefined {
  return /^src\/storage\/([^/]+)\//.exec(file)?.[1];
}

async function sourceFiles(): Promise<string[]> {
  const names = await readdir(join(root, "src"), { recursive: true });
  return names.filter((name) => name.endsWith(".ts")).map((name) => join("src", name));
}

/** Imports of types count: they bind as the others do. */
async function importsOf(file: string): Promise<Import[]> {
  const text = await readFile(join(root, file), "utf8");
  const found = text.matchAll(
    /^(?:import|export)\b[^;"]*\bfrom "([^"]+)"|\bimport\(?\s?"([^"]+)"/gm,
  );
  return [...found].map(([, named, whole]) => {
    const to = named ?? whole ?? "";
    return { from: file, to: to.startsWith(".") ? normalize(join(dirname(file), to)) : to };
  });
}

/** Each cycle once, from the file where the walk met it. */
function cyclesOf(edges: readonly Import[]): string[] {
  const targets = Map.groupBy(edges, ({ from }) => from);
  const done = new Set<string>();
  const cycles: string[] = [];
  const walk = (file: string, path: readonly string[]) => {
    const start = path.indexOf(file);
    if (start >= 0) cycles.push([...path.slice(start), file].join(" -> "));
    if (start >= 0 || done.has(file)) return;
    for (const { to } of targets.get(file) ?? []) walk(to, [...path, file]);
    done.add(file);
  };
  for (const file of targets.keys()) walk(file, []);
  return cycles;
}
