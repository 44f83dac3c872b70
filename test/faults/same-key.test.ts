import { Code, type ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { failureOf, newOwner, reasonOf, rpcCaller } from "../doors/callers.ts";
import { type KillableServer, startKillableServer } from "../doors/killable-server.ts";

let server: KillableServer;
beforeAll(async () => {
  server = await startKillableServer();
});
afterAll(async () => {
  expect(server.faults).toEqual([]);
  await server[Symbol.asyncDispose]();
});

test("a hundred executes of one key at once, over REST and gRPC, are one execution", async () => {
  const me = await newOwner(server);
  const { workflows } = rpcCaller(server, me);
  const { id } = await me.ok("POST", "/workflows", { name: "w" });
  const overRest = (input: object) =>
    me.call("POST", `/workflows/${id}/execute`, {
      ...{ body: { input, wait: 0 }, headers: { "idempotency-key": "k1" } },
    });
  const overGrpc = (input: string) =>
    workflows.executeWorkflow({ id, input, requestId: "k1", wait: { seconds: 0n } });

  const calls = Array.from({ length: 50 }, () => [
    overRest({ a: 1, b: 2 }).then(({ body }) => body),
    overGrpc('{ "b": 2, "a": 1 }'),
  ]);
  const runs = await Promise.all(calls.flat());
  expect(runs.filter(({ replayed }) => replayed !== true)).toHaveLength(1);
  expect(new Set(runs.map(({ executionId }) => executionId)).size).toBe(1);
  expect(await me.ok("GET", `/workflows/${id}/executions`)).toMatchObject({ total: 1 });

  const others = Array.from({ length: 10 }, (_, i) => [
    overRest({ other: i }).then(({ status, body }) => [status, body.error.code]),
    failureOf(overGrpc(`{"other":${i}}`)).then((e: ConnectError) => [e.code, reasonOf(e)]),
  ]);
  const refusals = await Promise.all(others.flat());
  const conflict = "IDEMPOTENCY_CONFLICT";
  expect(new Set(refusals.map(String))).toEqual(
    new Set([`409,${conflict}`, `${Code.AlreadyExists},${conflict}`]),
  );
  expect(await me.ok("GET", `/workflows/${id}/executions`)).toMatchObject({ total: 1 });
});
