import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Body, newOwner, type RestCaller, restCaller, rpcCaller } from "../doors/callers.ts";
import { type KillableServer, startKillableServer } from "../doors/killable-server.ts";
import { startLosingProxy } from "./losing-proxy.ts";

let server: KillableServer;
beforeAll(async () => {
  server = await startKillableServer();
});
afterAll(async () => {
  expect(server.faults).toEqual([]);
  await server[Symbol.asyncDispose]();
});

/** Another way to the server for the same caller. */
function through(proxy: { readonly httpUrl: string }, caller: RestCaller) {
  return restCaller({ httpUrl: proxy.httpUrl, grpcUrl: server.grpcUrl }, caller);
}

test("executes whose answers are lost with the server are done once", async () => {
  await using proxy = await startLosingProxy(server, (path) => path.endsWith("/execute"));
  const me = await newOwner(server);
  const { id } = await me.ok("POST", "/workflows", { name: "w", encryptedData: "x" });
  const keys = Array.from({ length: 60 }, (_, i) => `key-${i}`);
  const execute = (caller: RestCaller, key: string) =>
    caller.call("POST", `/workflows/${id}/execute`, {
      body: { input: key, wait: 0 },
      headers: { "idempotency-key": key },
    });

  const first = keys.map((key) => execute(through(proxy, me), key));
  const ends = Promise.allSettled(first);
  await proxy.whenLost(20);
  await server.kill();
  expect((await ends).filter(({ status }) => status === "fulfilled")).toEqual([]);
  await server.start();

  const retried = new Map<string, Body>();
  for (const key of keys) retried.set(key, (await execute(me, key)).body);
  for (const { idempotencyKey, status, text } of proxy.lost) {
    expect(status).toBe(202);
    const { executionId } = JSON.parse(text);
    expect(retried.get(idempotencyKey)).toMatchObject({ executionId, replayed: true });
  }
  const { total } = await me.ok("GET", `/workflows/${id}/executions`);
  expect(total).toBe(keys.length);
  const { workflows } = rpcCaller(server, me);
  for (const key of keys) {
    const asked = { id, input: JSON.stringify(key), requestId: key, wait: { seconds: 0n } };
    const { executionId, replayed } = await workflows.executeWorkflow(asked);
    expect([executionId, replayed]).toEqual([retried.get(key).executionId, true]);
  }
});

test("a poll whose answer is lost gives the same task to the same poll id", async () => {
  await using proxy = await startLosingProxy(server, (path) => path.endsWith("/poll"));
  const me = await newOwner(server, "a");
  await me.ok("POST", "/agents/register", { id: "a" });
  const draft = { name: "w", encryptedData: "data", encryptionKey: "key" };
  const { id } = await me.ok("POST", "/workflows", draft);
  const run = await me.ok("POST", `/workflows/${id}/execute`, { input: "once", wait: 0 });

  const poll = { pollId: "p1", wait: 5 };
  await expect(through(proxy, me).ok("POST", "/tasks/poll", poll)).rejects.toThrow();
  const [lost] = JSON.parse(proxy.lost[0]?.text ?? "").tasks;
  const { tasks } = await me.ok("POST", "/tasks/poll", poll);
  const same = { id: run.executionId, leaseToken: lost.leaseToken, attempt: 1, input: "once" };
  expect(tasks).toMatchObject([{ ...same, encryptedData: "data", encryptionKey: "key" }]);
  expect(tasks).toHaveLength(1);
  expect(await me.ok("POST", "/tasks/poll", { pollId: "p2", wait: 0 })).toEqual({ tasks: [] });

  await me.ok("POST", `/tasks/${run.executionId}/complete`, { leaseToken: lost.leaseToken });
  const done = await me.ok("GET", `/executions/${run.executionId}`);
  expect(done).toMatchObject({ status: "completed", attempt: 1 });
  expect(done.keyReleases).toHaveLength(1);
});

test("a caller that leaves while the task is on its way gets it by the same poll id", async () => {
  const me = await newOwner(server, "a");
  await me.ok("POST", "/agents/register", { id: "a" });
  for (let round = 0; round < 20; round += 1) {
    const poll = { pollId: `round-${round}`, wait: 5 };
    const leaving = AbortSignal.timeout(20 + round);
    const gone = fetch(`${server.httpUrl}/api/v1/tasks/poll`, {
      ...{ method: "POST", body: JSON.stringify(poll), signal: leaving },
      headers: {
        authorization: `Bearer ${me.token}`,
        "x-agent-id": "a",
        "content-type": "application/json",
      },
    }).then(
      (answer) => answer.json(),
      () => ({ tasks: [] }),
    );
    await pause(20);
    const { executionId } = await me.ok("POST", "/agents/a/execute", { wait: 0 });
    const before = (await gone).tasks;
    const { tasks } = await me.ok("POST", "/tasks/poll", poll);
    expect(tasks).toMatchObject([{ id: executionId, attempt: 1 }]);
    for (const { leaseToken } of before) expect(tasks[0].leaseToken).toBe(leaseToken);
    await me.ok("POST", `/tasks/${executionId}/complete`, { leaseToken: tasks[0].leaseToken });
  }
});

test("reports whose answers are lost count once", async () => {
  await using proxy = await startLosingProxy(server, (path) => /complete|fail/.test(path));
  const me = await newOwner(server, "a");
  await me.ok("POST", "/agents/register", { id: "a" });
  const { executionId } = await me.ok("POST", "/agents/a/execute", { wait: 0, maxAttempts: 3 });
  const next = async () => (await me.ok("POST", "/tasks/poll", { wait: 5 })).tasks[0];

  const failed = { leaseToken: (await next()).leaseToken, retryAfter: 0 };
  const fail = `/tasks/${executionId}/fail`;
  await expect(through(proxy, me).ok("POST", fail, failed)).rejects.toThrow();
  await me.ok("POST", fail, failed);
  const second = await next();
  // Counted twice, this would have been the third and last.
  expect(second.attempt).toBe(2);
  await me.ok("POST", fail, failed);
  await me.ok("POST", fail, { leaseToken: second.leaseToken, retryAfter: 0 });
  const third = await next();
  expect(third.attempt).toBe(3);

  const path = `/tasks/${executionId}/complete`;
  const report = { leaseToken: third.leaseToken, output: "once" };
  await expect(through(proxy, me).ok("POST", path, report)).rejects.toThrow();
  const ended = await me.ok("GET", `/executions/${executionId}`);
  for (let i = 0; i < 3; i += 1) expect(await me.ok("POST", path, report)).toEqual({});
  expect(await me.ok("GET", `/executions/${executionId}`)).toEqual(ended);
  expect(ended).toMatchObject({ status: "completed", output: "once", attempt: 3 });
  expect(proxy.lost.map(({ status }) => status)).toEqual([200, 200]);
});
