import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { GoingAwayReason, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import { newOwner, rpcCaller, wires } from "./callers.ts";
import { faultsOf, startTestServer, type TestServer } from "./server.ts";
import { openWay, ways } from "./streams.ts";

/** How long stopping may take when nothing runs that needs longer. */
const stopMs = 1500;

/** Stops the server; how long that took. */
async function stopTime(server: TestServer): Promise<number> {
  const beganMs = performance.now();
  await server[Symbol.asyncDispose]();
  return performance.now() - beganMs;
}

test("an idle server with open connections stops at once", async () => {
  const server = await startTestServer();
  const me = await newOwner(server);
  await me.ok("GET", "/workflows");
  for (const wire of wires) await rpcCaller(server, me, wire).workflows.listWorkflows({});
  expect(await stopTime(server)).toBeLessThan(stopMs);
  expect(faultsOf(server)).toEqual([]);
});

test("a connection that was never used holds nothing up", async () => {
  const server = await startTestServer();
  const unused = connect(Number(new URL(server.httpUrl).port), "127.0.0.1");
  await once(unused, "connect");
  const me = await newOwner(server);
  await me.ok("GET", "/workflows");
  expect(await stopTime(server)).toBeLessThan(stopMs);
});

test("an execute that waits answers with the present state", async () => {
  const server = await startTestServer();
  const me = await newOwner(server);
  await me.ok("POST", "/agents/register", { id: "a" });
  const rest = me.call("POST", "/agents/a/execute", { body: { wait: 60 } });
  const calls = wires.map((wire) =>
    rpcCaller(server, me, wire).agents.executeAgent({ id: "a", wait: { seconds: 60n, nanos: 0 } }),
  );
  await expect
    .poll(async () => (await me.ok("GET", "/sync/pull?kinds=execution")).changes)
    .toHaveLength(4);
  await pause(50);
  expect(await stopTime(server)).toBeLessThan(stopMs);
  const answer = await rest;
  expect([answer.status, answer.body.status]).toEqual([202, "pending"]);
  for (const result of await Promise.all(calls)) expect(result.executionId).toMatch(/^ex_/);
  expect(faultsOf(server)).toEqual([]);
});

test("a poll, a pull, a heartbeat and a GetExecution that wait answer at once", async () => {
  const server = await startTestServer();
  const me = await newOwner(server);
  const agent = me.as("a");
  await me.ok("POST", "/agents/register", { id: "a" });
  const { executionId } = await me.ok("POST", "/agents/a/execute", { wait: 0 });
  const { tasks } = await agent.ok("POST", "/tasks/poll", { wait: 5, lease: 600 });
  const { leaseToken } = tasks[0];
  const { cursor } = await me.ok("GET", "/sync/pull");
  const waiting = Promise.all([
    agent.call("POST", "/tasks/poll", { body: { wait: 30 } }),
    agent.call("POST", `/tasks/${executionId}/heartbeat`, { body: { leaseToken, wait: 30 } }),
    me.call("GET", `/executions/${executionId}?wait=60`),
    me.call("GET", `/sync/pull?since=${cursor}&wait=30`),
    rpcCaller(server, agent).agents.pollTasks({ wait: { seconds: 30n, nanos: 0 } }),
  ]);
  await pause(200);
  expect(await stopTime(server)).toBeLessThan(stopMs);
  const [poll, beat, execution, pull, rpcPoll] = await waiting;
  expect([poll.status, poll.body]).toEqual([200, { tasks: [] }]);
  expect([beat.status, beat.body.cancelRequested]).toEqual([200, false]);
  expect([execution.status, execution.body.status]).toEqual([200, "running"]);
  expect([pull.status, pull.body.records]).toEqual([200, []]);
  expect(rpcPoll.tasks).toEqual([]);
  expect(faultsOf(server)).toEqual([]);
});

test.each(ways)("a stream over %s ends with GOING_AWAY", async (way) => {
  const server = await startTestServer();
  const stream = openWay(server, await newOwner(server), {}, way);
  await stream.words(2);
  const [ms, last] = await Promise.all([stopTime(server), stream.next()]);
  expect(last).toMatchObject({ kind: UpdateKind.GOING_AWAY, reason: GoingAwayReason.STOPPING });
  expect(await stream.isOver()).toBe(true);
  expect(ms).toBeLessThan(stopMs);
  expect(faultsOf(server)).toEqual([]);
});

test("everything at once, many times, and nothing that was acknowledged is lost", async () => {
  const server = await startTestServer();
  const me = await newOwner(server);
  const acknowledged: string[] = [];
  let isOver = false;
  const write = async (worker: number) => {
    for (let i = 0; !isOver; i += 1) {
      const name = `${worker}-${i}`;
      const made = await me.call("POST", "/workflows", { body: { name } }).catch(() => undefined);
      if (made?.status === 201) acknowledged.push(made.body.id);
      else await pause(5);
    }
  };
  const writers = Array.from({ length: 8 }, (_, i) => write(i));
  for (let round = 0; round < 3; round += 1) {
    await pause(100);
    await server.restart();
  }
  isOver = true;
  await Promise.all(writers);
  expect(acknowledged.length).toBeGreaterThan(3);
  for (const id of acknowledged) await me.ok("GET", `/workflows/${id}`);
  expect(faultsOf(server)).toEqual([]);
  await server[Symbol.asyncDispose]();
});
