import { afterAll, beforeAll, expect, test } from "vitest";
import { newOwner, type RestCaller } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** An agent that has polled once, in vain. */
async function listener(owner: RestCaller, id: string, capabilities: string[] = []) {
  const agent = owner.as(id);
  await agent.ok("POST", "/agents/register", { id, type: "worker", capabilities });
  expect(await agent.ok("POST", "/tasks/poll", { wait: 0 })).toEqual({ tasks: [] });
  return agent;
}

async function execute(owner: RestCaller, workflow: object = {}, run: object = {}) {
  const { id } = await owner.ok("POST", "/workflows", { name: "w", ...workflow });
  const { executionId } = await owner.ok("POST", `/workflows/${id}/execute`, { wait: 0, ...run });
  return executionId as string;
}

test("says what is missing: nobody has all that it needs", async () => {
  const owner = await newOwner(server);
  await listener(owner, "near", ["gpu"]);
  await owner.ok("POST", "/agents/register", { id: "far", type: "worker" });
  const id = await execute(owner, { requiredCapabilities: ["ocr", "gpu"] });
  const { waiting, hint } = await owner.ok("GET", `/executions/${id}`);
  expect(waiting).toEqual({
    dueIn: "0s",
    requiredCapabilities: ["gpu", "ocr"],
    agents: [
      {
        agentId: "near",
        listening: true,
        lastSeenAt: expect.stringMatching(/^20.*Z$/),
        missingCapabilities: ["ocr"],
      },
      {
        agentId: "far",
        listening: false,
        lastSeenAt: expect.any(String),
        missingCapabilities: ["gpu", "ocr"],
      },
    ],
  });
  expect(hint).toContain("No agent that has gpu, ocr is listening.");
  expect(hint).toContain("Agent near is listening, but lacks ocr.");
});

test("says who may take it, and who was last heard of when", async () => {
  const owner = await newOwner(server);
  await owner.ok("POST", "/agents/register", { id: "asleep", type: "worker" });
  const id = await execute(owner);
  const asleep = await owner.ok("GET", `/executions/${id}`);
  expect(asleep.waiting.agents).toMatchObject([
    { agentId: "asleep", listening: false, missingCapabilities: [] },
  ]);
  expect(asleep.hint).toContain("No agent is listening.");
  const { lastSeenAt } = await owner.ok("GET", "/agents/asleep");
  expect(asleep.waiting.agents[0].lastSeenAt).toBe(lastSeenAt);
});

test("says when the next attempt begins", async () => {
  const owner = await newOwner(server);
  const agent = await listener(owner, "worker");
  const id = await execute(owner);
  const { tasks } = await agent.ok("POST", "/tasks/poll", { wait: 5 });
  const { leaseToken } = tasks[0];
  await agent.ok("POST", `/tasks/${id}/fail`, { leaseToken, retryAfter: 40 });
  const { waiting, hint, attempt } = await owner.ok("GET", `/executions/${id}`);
  expect(Number.parseFloat(waiting.dueIn)).toBeGreaterThan(5);
  expect(Number.parseFloat(waiting.dueIn)).toBeLessThanOrEqual(40);
  expect(hint).toMatch(/^The next attempt begins in \d+ s\.$/);
  expect(attempt).toBe(1);
});

test("names the agent that was named, and nobody else", async () => {
  const owner = await newOwner(server);
  await listener(owner, "other");
  await owner.ok("POST", "/agents/register", { id: "mine", type: "worker" });
  const id = await execute(owner, { agentId: "mine", requiredCapabilities: ["x"] });
  const before = await owner.ok("GET", `/executions/${id}`);
  expect(before.waiting).toMatchObject({ requiredCapabilities: [] });
  expect(before.waiting.agents).toMatchObject([{ agentId: "mine", missingCapabilities: [] }]);
  expect(before.hint).toContain("Agent mine is not listening.");
  await owner.as("mine").ok("DELETE", "/agents/mine");
  const after = await owner.ok("GET", `/executions/${id}`);
  expect(after.waiting.agents).toEqual([]);
});

test("shows a public agent of another only as far as everybody sees it", async () => {
  const [owner, other] = [await newOwner(server), await newOwner(server)];
  const id = `open-${owner.token.slice(-8).replaceAll("_", "-")}`;
  await other.ok("POST", "/agents/register", { id, type: "worker", isPublic: true });
  await other.ok("POST", "/agents/register", { id: "private", type: "worker" });
  const execution = await execute(owner, { agentId: id, allowPublic: true });
  const read = async () => (await owner.ok("GET", `/executions/${execution}`)).waiting.agents;
  expect(await read()).toMatchObject([{ agentId: id }]);
  await other.ok("POST", "/agents/register", { id, type: "worker" });
  expect(await read()).toEqual([]);
  await owner.ok("POST", "/agents/register", { id, type: "worker" });
  expect(await read()).toEqual([]);
});

test("names twenty at most, those who listen first", async () => {
  const owner = await newOwner(server);
  await listener(owner, "listening");
  for (let n = 0; n < 25; n++) {
    await owner.ok("POST", "/agents/register", { id: `idle-${n}`, type: "worker" });
  }
  const id = await execute(owner);
  const { waiting, hint } = await owner.ok("GET", `/executions/${id}`);
  expect(waiting.agents).toHaveLength(20);
  expect(waiting.agents[0]).toMatchObject({ agentId: "listening", listening: true });
  expect(waiting.truncated).toBe(true);
  expect(hint).toBeUndefined();
});

test("is said only while it waits, and only by GetExecution", async () => {
  const owner = await newOwner(server);
  const agent = await listener(owner, "worker");
  const { id } = await owner.ok("POST", "/workflows", { name: "w" });
  const started = await owner.ok("POST", `/workflows/${id}/execute`, { wait: 0 });
  expect(started.waiting).toBeUndefined();
  const { executions } = await owner.ok("GET", `/workflows/${id}/executions`);
  expect(executions[0].waiting).toBeUndefined();
  await agent.ok("POST", "/tasks/poll", { wait: 5 });
  const running = await owner.ok("GET", `/executions/${started.executionId}`);
  expect([running.status, running.waiting]).toEqual(["running", undefined]);
});
