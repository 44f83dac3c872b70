import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import { newOwner, type RestCaller, rpcCaller } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

// Strings that would betray where a secret went. What is sealed at rest must be found in no file;
// what is handed to one must be found in no answer to another, and nothing in the log.

const canary = (name: string) => `canary-${name}-${randomBytes(12).toString("hex")}`;
const secrets = {
  key: canary("key"),
  newKey: canary("newKey"),
  input: canary("input"),
  output: canary("output"),
  progress: canary("progress"),
  error: canary("error"),
};
const payload = canary("payload");

/** Everything that was answered to everyone but the one it was meant for. */
interface Heard {
  readonly byOwner: string[];
  readonly byStranger: string[];
  readonly byAgent: string[];
}

test("secrets are where they belong and nowhere else", async () => {
  const server = await startTestServer({ accessLog: true });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const me = await newOwner(server);
  const stranger = await newOwner(server);
  const updates = collectUpdates(server, me);
  const heard: Heard = { byOwner: [], byStranger: [], byAgent: [] };

  const ids = await runAll(me, heard);
  await lookAround(server, me, ids, heard.byOwner);
  await lookAround(server, stranger, ids, heard.byStranger);
  await provokeErrors(me, ids, heard.byOwner);
  await pause(50);
  heard.byOwner.push(JSON.stringify(await updates.stop()));

  // The owner reads input's fate, output, progress and error of his execution, never a key.
  expectAbsent(heard.byOwner.join("\n"), [secrets.key, secrets.newKey, secrets.input]);
  expectPresent(heard.byOwner.join("\n"), [secrets.output, secrets.progress, secrets.error]);
  expectAbsent(heard.byStranger.join("\n"), [...Object.values(secrets), payload]);
  expectPresent(heard.byAgent.join("\n"), [secrets.key, secrets.newKey, secrets.input, payload]);
  expectAbsent(server.log.join("\n"), [...Object.values(secrets), payload, me.token]);
  expect(server.log.length).toBeGreaterThan(20);

  await expectSealed(server.dataDir);
  await server.restart();
  await expectSealed(server.dataDir);
  // Proof that the files are the right ones: what is not a secret of ours lies there as it came.
  expect(await contentOf(server.dataDir)).toContain(payload);
  expect(await me.ok("GET", `/executions/${ids.done}`)).toMatchObject({ output: secrets.output });
});

test("a deleted workflow leaves no key and no payload that can be read", async () => {
  const server = await startTestServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const me = await newOwner(server);
  const { id } = await me.ok("POST", "/workflows", { name: "w", encryptedData: payload });
  await me.ok("DELETE", `/workflows/${id}`);
  await lookAround(server, me, { workflow: id, done: "none", failed: "none" }, []);
  const answers: string[] = [];
  await lookAround(server, me, { workflow: id, done: "none", failed: "none" }, answers);
  expectAbsent(answers.join("\n"), [payload]);
});

interface Ids {
  readonly workflow: string;
  readonly done: string;
  readonly failed: string;
}

/** One execution that completes with progress, one that fails, and a change of key between. */
async function runAll(me: RestCaller, { byOwner, byAgent }: Heard): Promise<Ids> {
  const agent = me.as("worker");
  const say = async (at: string, body?: object) => {
    const [verb = "", path = ""] = at.split(" ");
    const answer = await me.call(verb, path, body && { body });
    byOwner.push(answer.text + JSON.stringify([...answer.headers]));
    return answer.body;
  };
  const take = async () => {
    const { tasks } = await agent.ok("POST", "/tasks/poll", { wait: 5 });
    byAgent.push(JSON.stringify(tasks));
    return tasks[0];
  };
  await say("POST /agents/register", { id: "worker" });
  const draft = { name: "w", encryptedData: payload, encryptionKey: secrets.key };
  const { id } = await say("POST /workflows", draft);
  const run = { input: { text: secrets.input }, wait: 0, requestId: "r1" };
  await say(`POST /workflows/${id}/execute`, run);
  const first = await take();
  const { leaseToken } = first;
  await agent.ok("POST", `/tasks/${first.id}/heartbeat`, {
    ...{ leaseToken, progress: secrets.progress },
  });
  await say(`GET /executions/${first.id}`);
  await agent.ok("POST", `/tasks/${first.id}/complete`, { leaseToken, output: secrets.output });
  await say(`POST /workflows/${id}/execute`, run);

  await say(`PATCH /workflows/${id}`, { encryptionKey: secrets.newKey });
  await say(`POST /workflows/${id}/execute`, { input: secrets.input, wait: 0 });
  const second = await take();
  const error = { code: "BROKEN", message: secrets.error };
  await agent.ok("POST", `/tasks/${second.id}/fail`, {
    ...{ leaseToken: second.leaseToken, error, retryable: false },
  });
  return { workflow: id, done: first.id, failed: second.id };
}

/** Everything that can be read. */
async function lookAround(server: TestServer, who: RestCaller, ids: Ids, answers: string[]) {
  for (const path of [
    `/workflows/${ids.workflow}`,
    `/workflows/${ids.workflow}/executions`,
    `/executions/${ids.done}`,
    `/executions/${ids.failed}`,
    "/workflows",
    "/agents",
    "/sync/pull?kinds=workflow,execution,agent,state_upserted,state_deleted",
  ]) {
    const answer = await who.call("GET", path);
    answers.push(answer.text + JSON.stringify([...answer.headers]));
  }
  const { workflows } = rpcCaller(server, who);
  for (const id of [ids.done, ids.failed]) {
    const said = await workflows.getExecution({ id }).catch((error: Error) => error);
    answers.push(text(said));
  }
}

/** Refusals that had a secret in their hands. */
async function provokeErrors(me: RestCaller, ids: Ids, answers: string[]) {
  const long = (value: string) => value.repeat(10_000);
  const asked: [string, string, object][] = [
    ["POST", "/workflows", { name: 5, encryptionKey: secrets.key }],
    ["POST", "/workflows", { name: "w", encryptionKey: long(secrets.key) }],
    ["POST", "/workflows", { name: "w", encryptionKey: [secrets.key] }],
    ["POST", "/workflows/none/execute", { input: secrets.input }],
    ["POST", `/workflows/${ids.workflow}/execute`, { input: long(secrets.input) }],
    ["POST", `/workflows/${ids.workflow}/execute`, { input: `${secrets.input}\0` }],
    ["POST", `/workflows/${ids.workflow}/execute`, { input: secrets.input, requestId: "r1" }],
    ["PATCH", "/workflows/none", { encryptionKey: secrets.newKey }],
  ];
  for (const [verb, path, body] of asked) {
    const answer = await me.call(verb, path, { body });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    answers.push(answer.text);
  }
  const broken = await me.call("POST", "/workflows", { raw: `{"encryptionKey":"${secrets.key}"` });
  expect(broken.status).toBe(400);
  answers.push(broken.text);
}

/** Every update of an owner's stream, all kinds. */
function collectUpdates(server: TestServer, who: RestCaller) {
  const ending = new AbortController();
  const seen: string[] = [];
  const reading = (async () => {
    const { sync } = rpcCaller(server, who);
    const { STATE_UPSERTED, WORKFLOW, EXECUTION, AGENT } = UpdateKind;
    const request = { since: 0n, kinds: [STATE_UPSERTED, WORKFLOW, EXECUTION, AGENT] };
    for await (const update of sync.subscribe(request, { signal: ending.signal })) {
      seen.push(text(update));
    }
  })().catch(() => {});
  return {
    async stop() {
      ending.abort();
      await reading;
      expect(seen.length).toBeGreaterThan(5);
      return seen;
    },
  };
}

function text(value: unknown): string {
  if (value instanceof Error) return `${value.name} ${value.message}`;
  return JSON.stringify(value, (_, part) => (typeof part === "bigint" ? String(part) : part));
}

async function expectSealed(dataDir: string): Promise<void> {
  expectAbsent(await contentOf(dataDir), Object.values(secrets));
}

/** The bytes of every file but the lock: closing that one would free it. */
async function contentOf(dataDir: string): Promise<string> {
  const names = (await readdir(dataDir)).filter((name) => name.startsWith("sealflow.db"));
  expect(names).toContain("sealflow.db");
  const files = names.filter((name) => !name.endsWith(".lock"));
  const contents = await Promise.all(files.map((name) => readFile(join(dataDir, name), "latin1")));
  return contents.join("\n");
}

function expectAbsent(content: string, canaries: readonly string[]): void {
  for (const value of canaries) {
    for (const form of [value, Buffer.from(value).toString("base64").slice(0, -4)]) {
      if (content.includes(form)) throw new Error(`found ${value.split("-")[1]}`);
    }
  }
}

function expectPresent(content: string, canaries: readonly string[]): void {
  for (const value of canaries) {
    if (!content.includes(value)) throw new Error(`${value.split("-")[1]} was not heard`);
  }
}
