import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { newOwner, type RestCaller, restCaller } from "./callers.ts";
import { startKillableServer } from "./killable-server.ts";
import { startTestServer } from "./server.ts";

test("a stop and a start keep everything", async () => {
  await using server = await startTestServer();
  const me = await newOwner(server);
  const agent = me.as("a");
  await me.ok("POST", "/agents/register", { id: "a", type: "worker", capabilities: ["text"] });
  const { id } = await me.ok("POST", "/workflows", {
    ...{ name: "w", encryptedData: "data", encryptionKey: "key", requestId: "r1" },
  });
  const [held, queued, done] = await Promise.all(
    [1, 2, 3].map((input) => me.ok("POST", `/workflows/${id}/execute`, { wait: 0, input })),
  );
  const { tasks } = await agent.ok("POST", "/tasks/poll", { wait: 5, maxTasks: 2, lease: 600 });
  const [first, second] = tasks;
  const report = { leaseToken: second.leaseToken, output: "kept" };
  await agent.ok("POST", `/tasks/${second.id}/complete`, report);
  await me.ok("POST", "/sync/push", { type: "t", entityId: "e", version: "1", encryptedData: "x" });
  const paths = [
    ...["/workflows", `/workflows/${id}`, "/agents", `/workflows/${id}/executions`],
    ...[held, queued, done].map(({ executionId }) => `/executions/${executionId}`),
    "/sync/pull?kinds=workflow,execution,agent,state_upserted",
  ];
  const read = () => Promise.all(paths.map((path) => me.ok("GET", path)));
  const before = await read();
  await server.restart();
  // Who was listening is not known at first, so what waits may be explained.
  const settled = (answers: object[]) =>
    JSON.parse(JSON.stringify(answers), (key, value) =>
      ["hint", "serverTime", "lastSeenAt"].includes(key) ? undefined : value,
    );
  expect(settled(await read())).toEqual(settled(before));

  expect(await agent.ok("POST", `/tasks/${second.id}/complete`, report)).toEqual({});
  await agent.ok("POST", `/tasks/${first.id}/complete`, { leaseToken: first.leaseToken });
  const next = await agent.ok("POST", "/tasks/poll", { wait: 5 });
  expect(next.tasks).toMatchObject([{ encryptionKey: "key", attempt: 1 }]);
  const again = await me.call("POST", "/workflows", {
    body: { name: "w", encryptedData: "data", encryptionKey: "key", requestId: "r1" },
  });
  expect([again.status, again.body.id]).toEqual([200, id]);
});

/** What the server has promised by an answer. */
interface Promised {
  readonly workflows: string[];
  /** The highest version by entity. */
  readonly records: Map<string, number>;
  /** Executions with an acknowledged result. */
  readonly results: string[];
  cursor: number;
}

const rounds = 5;
const roundMs = 500;

test("kill -9 loses nothing that was acknowledged", { timeout: 120_000 }, async () => {
  await using server = await startKillableServer();
  const me = restCaller(server, { token: await server.token({ sub: "me" }), agentId: "a" });
  const promised: Promised = { workflows: [], records: new Map(), results: [], cursor: 0 };
  let held: { id: string; leaseToken: string } | undefined;
  for (let round = 0; round <= rounds; round += 1) {
    if (round > 0) await server.start();
    await expectKept(me, promised);
    if (held !== undefined) {
      await me.ok("POST", `/tasks/${held.id}/complete`, {
        ...{ leaseToken: held.leaseToken, output: held.id },
      });
      promised.results.push(held.id);
    }
    await me.ok("POST", "/agents/register", { id: "a" });
    const { executionId } = await me.ok("POST", "/agents/a/execute", { wait: 0 });
    const { tasks } = await me.ok("POST", "/tasks/poll", { wait: 5, lease: 600 });
    held = tasks[0];
    expect(held?.id).toBe(executionId);
    await writeUntilKilled(me, promised, () => server.kill());
  }
  expect(promised.workflows.length).toBeGreaterThan(rounds);
  expect(promised.records.size).toBeGreaterThan(rounds);
  expect(promised.results).toHaveLength(rounds);
});

async function writeUntilKilled(
  me: RestCaller,
  promised: Promised,
  kill: () => Promise<void>,
): Promise<void> {
  let isOver = false;
  const repeat = async (write: (i: number) => Promise<void>) => {
    for (let i = 0; !isOver; i += 1) await write(i);
  };
  const create = async () => {
    const { id } = await me.ok("POST", "/workflows", { name: "w", encryptedData: "x" });
    promised.workflows.push(id);
  };
  const push = (worker: number) => async (i: number) => {
    const entityId = `${worker}-${i % 10}`;
    const version = (promised.records.get(entityId) ?? 0) + 1;
    const record = { type: "t", entityId, version: `${version}`, encryptedData: "x" };
    const answer = await me.ok("POST", "/sync/push", record);
    promised.records.set(entityId, version);
    promised.cursor = Math.max(promised.cursor, answer.record.cursor);
  };
  const writers = [create, create, push(1), push(2), push(3)].map((write) =>
    repeat(write).catch((error: unknown) => {
      if (!isOver) throw error;
    }),
  );
  await pause(roundMs + Math.random() * 50);
  isOver = true;
  await kill();
  await Promise.all(writers);
}

async function expectKept(me: RestCaller, promised: Promised): Promise<void> {
  const { records, cursor } = await me.ok("GET", "/sync/pull?since=0");
  expect(cursor).toBeGreaterThanOrEqual(promised.cursor);
  const versions = new Map<string, number>();
  for (const { entityId, version } of records) versions.set(entityId, Number(version));
  for (const [entityId, version] of promised.records) {
    expect([entityId, (versions.get(entityId) ?? 0) >= version]).toEqual([entityId, true]);
  }
  // A push that was not acknowledged may be stored: go on from what is there.
  for (const [entityId, version] of versions) promised.records.set(entityId, version);
  promised.cursor = cursor;
  for (const id of promised.workflows) {
    expect((await me.call("GET", `/workflows/${id}`)).status).toBe(200);
  }
  for (const id of promised.results) {
    expect(await me.ok("GET", `/executions/${id}`)).toMatchObject({ output: id });
  }
}
