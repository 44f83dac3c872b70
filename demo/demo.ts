// What the service does, end to end, on free ports and in a temporary directory:  npm run demo
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, newKey, PushStatus, type Sealflow, seal, unseal } from "../src/client/client.ts";
import { sealRecord, unsealRecord } from "../src/client/crypto.ts";
import { Closers } from "../src/closers.ts";
import { Program } from "./program.ts";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);

const words: Readonly<Record<number, string>> = {
  [PushStatus.CREATED]: "created",
  [PushStatus.UPDATED]: "updated",
};

/** Says one thing that happened. */
function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "sealflow-demo-"));
  const closers = new Closers();
  try {
    await show(folder, closers);
  } finally {
    await closers.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function show(folder: string, closers: Closers): Promise<void> {
  say("1. A server starts, with nothing but an empty directory.");
  const server = closers.use(sealflow(["serve", "--http-port", "0", "--grpc-port", "0"], folder));
  const [, url = ""] = await server.line(/(http:\/\/\S+)\/api\/v1/);
  say(`   ${url}\n`);

  const token = await output(sealflow(["token", "--sub", "ann"], folder));
  const laptop = connect(url, { token, agentId: "laptop" });
  const phone = connect(url, { token, agentId: "phone" });

  say("2. The phone pulls its state once, then goes offline.");
  const phoneCursor = (await phone.sync.pullState({})).cursor;
  say(`   its cursor: ${phoneCursor}\n`);

  say("3. A key is made on the laptop. The server never sees it.");
  const key = newKey();
  const keyFile = join(folder, "key");
  await writeFile(keyFile, key, { mode: 0o600 });

  say("   An ordinary program becomes an agent: it counts the lines of a folder's files.");
  const agent = closers.use(
    sealflow(
      ["agent", "--id", "counter", "--server", url, "--sub", "ann", "--key-file", keyFile].concat([
        "--capability",
        "files",
        "--",
        process.execPath,
        join(here, "count-lines.ts"),
      ]),
      folder,
    ),
  );
  say(`   ${(await agent.line(/(counter: registered.*)/))[1]}\n`);

  const result = await runSealed(laptop, key);
  say(`   what the agent says: ${(await agent.line(/(ex_.*)/))[1]}\n`);
  await syncSealed({ laptop, phone, key, phoneCursor, result });
  await showBlindness(folder, key);

  say("\n7. The agent is asked to stop, and drains.");
  agent.stop("SIGINT");
  for (const line of await agent.rest()) say(`   ${line}`);
  say("   The server is asked to stop.");
  server.stop("SIGTERM");
  await server.rest();
  say("\nThat is all: one process, one contract, and nothing in clear on the server.");
}

async function runSealed(laptop: Sealflow, key: string): Promise<unknown> {
  say("4. An encrypted workflow is made, and executed over this repository's own source.");
  const encryptedData = await seal({ program: "count lines", by: "folder" }, key);
  const workflow = await laptop.workflows.createWorkflow({
    name: "Count lines",
    encryptedData,
    requiredCapabilities: ["files"],
  });
  say(`   ${workflow.id}, its payload: ${encryptedData.slice(0, 40)}…`);
  const input = await seal({ folder: join(root, "src") }, key);
  const result = await laptop.workflows.executeWorkflow({
    id: workflow.id,
    input: JSON.stringify(input),
    wait: { seconds: 30n, nanos: 0 },
  });
  say(
    `   ${result.executionId}, what the server has of its output: ${result.output.slice(0, 40)}…`,
  );
  const opened = await unseal(JSON.parse(result.output), key);
  say(`   what the laptop opens: ${JSON.stringify(opened)}`);
  return opened;
}

async function syncSealed(parts: {
  readonly laptop: Sealflow;
  readonly phone: Sealflow;
  readonly key: string;
  readonly phoneCursor: bigint;
  readonly result: unknown;
}): Promise<void> {
  const { laptop, phone, key, phoneCursor, result } = parts;
  say("5. The laptop pushes the result as a sealed record, then a better version of it.");
  for (const [version, note] of [
    ["1.0.0", "first look"],
    ["1.1.0", "checked"],
  ] as const) {
    const name = { type: "report", entityId: "lines", version };
    const encryptedData = await sealRecord(name, { note, result }, key);
    const { status, record } = await laptop.sync.pushState({ ...name, encryptedData });
    say(`   ${version}: ${words[status]}, revision ${record?.revision}`);
  }
  say("\n6. The phone comes back with its one number.");
  const pulled = await phone.sync.pullState({ since: phoneCursor });
  for (const record of pulled.records) {
    const state = await unsealRecord(record, key);
    say(`   ${record.type}/${record.entityId} ${record.version}: ${JSON.stringify(state)}`);
  }
}

async function showBlindness(folder: string, key: string): Promise<void> {
  const files = ["sealflow.db", "sealflow.db-wal"].map((name) => join(folder, "data", name));
  const bytes = await Promise.all(files.map((file) => readFile(file).catch(() => Buffer.alloc(0))));
  const found = bytes.some((content) => content.includes(key) || content.includes("first look"));
  say(`   The key or the note in the database: ${found ? "FOUND" : "not found"}`);
  if (found) process.exitCode = 1;
}

/** A command of Sealflow, on data of its own. */
function sealflow(args: readonly string[], folder: string): Program {
  const [command = "", ...rest] = args;
  const cut = rest.indexOf("--");
  const at = cut < 0 ? rest.length : cut;
  const all = [...rest.slice(0, at), "--data-dir", join(folder, "data"), ...rest.slice(at)];
  return new Program(spawn(process.execPath, [join(root, "src/main.ts"), command, ...all]));
}

async function output(program: Program): Promise<string> {
  return (await program.rest()).join("\n").trim();
}

await main();
