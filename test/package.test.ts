import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newKey } from "../src/client/crypto.ts";
import { startForTest } from "./cli/processes.ts";
import { startTestServer } from "./doors/server.ts";
import { makeFolder } from "./suites/open-store.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
const { dependencies, version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

let folder: Awaited<ReturnType<typeof makeFolder>>;
/** Somebody's program that has the package, and of ours nothing else. */
let app: string;
let installed: string;

beforeAll(async () => {
  folder = await makeFolder();
  app = join(folder.path, "app");
  installed = join(app, "node_modules/sealflow");
  const dist = join(folder.path, "dist");
  await run(process.execPath, [join(root, "tools/build.ts"), dist]);
  await run("npm", ["pack", dist, "--silent", "--pack-destination", folder.path]);
  await mkdir(installed, { recursive: true });
  const tarball = join(folder.path, `sealflow-${version}.tgz`);
  await run("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"]);
  const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  await Promise.all(Object.keys(manifest.dependencies).map(linkDependency));
  await writeFile(join(app, "package.json"), '{ "type": "module" }');
});

afterAll(() => folder[Symbol.asyncDispose]());

/** As an install would place it; one that the manifest forgets is not to be found. */
async function linkDependency(name: string): Promise<void> {
  const place = join(app, "node_modules", name);
  await mkdir(dirname(place), { recursive: true });
  await symlink(join(root, "node_modules", name), place);
}

test("holds what is needed to run it, and nothing of a checkout", async () => {
  const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  expect(manifest).toMatchObject({
    name: "sealflow",
    version,
    license: "Apache-2.0",
  });
  // What the bundled command alone needs is in the bundle, and its terms with it.
  expect(dependencies).toMatchObject(manifest.dependencies);
  expect(manifest.dependencies).not.toHaveProperty("drizzle-orm");
  expect(await readFile(join(installed, "bin/LICENSES"), "utf8")).toContain("drizzle-orm");
  for (const field of ["private", "scripts", "devDependencies", "optionalDependencies"]) {
    expect(manifest).not.toHaveProperty(field);
  }
  expect((await readdir(installed)).sort()).toEqual(
    ["LICENSE", "README.md", "bin", "docs", "gen", "package.json", "proto", "src"].sort(),
  );
  const files = await readdir(installed, { recursive: true });
  expect(files.filter((name) => /(?<!\.d)\.ts$/.test(name))).toEqual([]);
  expect(files).toContain("proto/sealflow/v1/workflow.proto");
});

test("is typed for those who import it", async () => {
  await writeFile(
    join(app, "typed.ts"),
    `import { connect, type Sealflow, WorkflowStatus } from "sealflow/client";
     import { runAgent } from "sealflow/agent";
     import { newKey, seal } from "sealflow/crypto";
     import { WorkflowService } from "sealflow/gen/sealflow/v1/workflow_pb.js";
     const sealflow: Sealflow = connect("http://localhost:8080", { token: "t", agentId: "a" });
     const workflow = await sealflow.workflows.getWorkflow({ id: "wf_1" });
     export const isDraft: boolean = workflow.status === WorkflowStatus.DRAFT;
     export const name: string = WorkflowService.typeName;
     export const sealed: string = await seal({ text: "to be" }, newKey());
     // @ts-expect-error an id is a string: an import that is not typed would let it pass
     await sealflow.workflows.getWorkflow({ id: 1 });
     // @ts-expect-error an agent needs a handler
     runAgent({ server: "http://localhost:8080", token: "t", id: "a" });`,
  );
  expect(await typeErrors("typed.ts")).toBe("");
});

const types = join(root, "node_modules/@types");

test("runs the replica of its manual, which is typed", async () => {
  await using server = await startTestServer();
  const [, example = ""] =
    /### Keep state in step[\s\S]*?```ts\n([\s\S]*?)```/.exec(
      await readFile(join(installed, "README.md"), "utf8"),
    ) ?? [];
  const given = { server: server.httpUrl, token: await server.token({ sub: "me" }), key: newKey() };
  const constants = Object.entries(given).map(
    ([name, value]) => `const ${name} = ${JSON.stringify(value)};\n`,
  );
  const end = "while (notes.pendingCount > 0) await new Promise((r) => setTimeout(r, 20));";
  const program = "replica.ts";
  await writeFile(
    join(app, program),
    `${constants.join("")}${example}${end}\nawait notes.close();`,
  );
  expect(await typeErrors(program)).toBe("");
  const { stdout } = await run(process.execPath, [program], { cwd: app });
  const lines = stdout.trim().split("\n");
  expect(lines).toContainEqual(expect.stringMatching(/^n1 to be or not to be (true|false)$/));
  expect(lines.filter((line) => line === "pushed n1")).toHaveLength(2);
});

/** What the compiler says of a program that imports the package. */
async function typeErrors(program: string): Promise<string> {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const options =
    "--noEmit --strict --module nodenext --target es2024 --lib es2024,dom,dom.iterable";
  const { stdout } = await run(
    process.execPath,
    [tsc, ...options.split(" "), "--types", "node", "--typeRoots", types, program],
    { cwd: app },
  ).catch((failure: { stdout: string }) => failure);
  return stdout;
}

test("its command tells its version", async () => {
  const { stdout } = await run(process.execPath, [await command(), "--version"]);
  expect(stdout).toContain(version);
});

test("its command serves, and its client makes a workflow and many records there", async () => {
  const dataDir = join(folder.path, "data");
  const data = ["--data-dir", dataDir];
  const options = ["--http-port", "0", "--grpc-port", "0", ...data];
  const server = startForTest(process.execPath, [await command(), "serve", ...options]);
  try {
    const url = await addressPrinted(server);
    const { stdout: token } = await run(process.execPath, [
      await command(),
      ...["token", "--sub", "me", ...data],
    ]);
    const program = join(app, "program.js");
    await writeFile(
      program,
      `import { connect } from "sealflow/client";
       const [, , url, token] = process.argv;
       const sealflow = connect(url, { token, agentId: "laptop" });
       const { id, name } = await sealflow.workflows.createWorkflow({ name: "Count words" });
       const found = await sealflow.workflows.getWorkflow({ id });
       const encryptedData = "A".repeat(10_000);
       for (let batch = 0; batch < 5; batch++) {
         const records = Array.from({ length: 100 }, (_, i) => ({
           ...{ type: "note", entityId: \`\${batch}-\${i}\`, encryptedData, version: "1.0.0" },
         }));
         await sealflow.sync.pushState({ records });
       }
       console.log(JSON.stringify([name, found.name]));`,
    );
    const { stdout } = await run(process.execPath, [program, url, token.trim()]);
    expect(JSON.parse(stdout)).toEqual(["Count words", "Count words"]);
    // Its thread has a module of its own, and copies most of them into the file.
    const fileBytes = async () => (await stat(join(dataDir, "sealflow.db"))).size;
    await expect.poll(fileBytes, { timeout: 5_000 }).toBeGreaterThan(2_000_000);
  } finally {
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  }
});

/** The file that npm links as `sealflow`. It must be fit to be run by itself. */
async function command(): Promise<string> {
  const { bin } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const path = join(installed, bin.sealflow);
  expect(await readFile(path, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
  return path;
}

/** Waits until the server has said where it is. */
async function addressPrinted(server: ChildProcess): Promise<string> {
  if (server.stdout === null) throw new Error("stdout is not piped");
  const lines = createInterface({ input: server.stdout });
  for await (const line of lines) {
    const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (address === undefined) continue;
    server.stdout.resume();
    return address;
  }
  throw new Error("it ended without an address");
}
