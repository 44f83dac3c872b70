import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SubscribeRequestSchema, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import { failureOf, type RestCaller, reasonOf } from "./callers.ts";
import { startTestServer, type TestServer } from "./server.ts";
import { inWords, newDevice, openWay } from "./streams.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

describe.each(["grpc", "rest"] as const)("filters over %s", (way) => {
  const open = (who: RestCaller, request: Parameters<typeof openWay>[2] = {}) =>
    openWay(server, who, request, way);

  test("types and entities narrow, and the cursor moves past what they leave out", async () => {
    const { me, push } = await newDevice(server);
    await push("a");
    await push("b", { type: "todo" });
    await using stream = open(me, { since: 0n, types: ["todo"], entityIds: ["b", "c"] });
    expect(await stream.words(3)).toEqual(["READY", "STATE_UPSERTED b", "UP_TO_DATE"]);
    await push("b");
    await push("d", { type: "todo" });
    await push("c", { type: "todo" });
    expect(await stream.words(1)).toEqual(["STATE_UPSERTED c"]);
  });

  test("what the device pushed itself is left out when it asks so", async () => {
    const { me, push } = await newDevice(server);
    await using stream = open(me, { excludeOwn: true });
    expect(await stream.words(2)).toEqual(["READY", "UP_TO_DATE"]);
    await push("own");
    const phone = me.as("phone");
    await phone.ok("POST", "/sync/push", {
      ...{ type: "note", entityId: "theirs", version: "1", encryptedData: "x" },
    });
    expect(await stream.words(1)).toEqual(["STATE_UPSERTED theirs"]);
  });

  test("deletions alone", async () => {
    const { me, push } = await newDevice(server);
    await using stream = open(me, { kinds: [UpdateKind.STATE_DELETED] });
    await stream.words(2);
    await push("a");
    await push("a", { version: "2", deleted: true, encryptedData: "" });
    expect(await stream.words(1)).toEqual(["STATE_DELETED a"]);
  });

  test("workflows, executions and agents, when their kinds are asked for", async () => {
    const { me, push } = await newDevice(server);
    const kinds = [UpdateKind.WORKFLOW, UpdateKind.EXECUTION, UpdateKind.AGENT];
    await using stream = open(me, { kinds });
    await stream.words(2);
    await push("left out");
    const { id } = await me.ok("POST", "/workflows", { name: "w" });
    expect(await stream.words(1)).toEqual([`WORKFLOW ${id} 1`]);
    await me.ok("POST", "/agents/register", { id: "a" });
    expect(await stream.words(1)).toEqual(["AGENT a 1"]);
    const run = await me.ok("POST", `/workflows/${id}/execute`, { wait: 0 });
    const queued = await stream.next();
    expect(inWords(queued)).toBe(`EXECUTION ${run.executionId} 1`);
    expect(queued.change?.workflowId).toBe(id);
    await me.as("a").ok("POST", "/tasks/poll", { wait: 5 });
    const granted = (await stream.words(2)).sort();
    expect(granted).toEqual([`EXECUTION ${run.executionId} 2`, `WORKFLOW ${id} 2`]);
    await me.ok("DELETE", `/workflows/${id}`);
    const deleted = (await stream.words(2)).sort();
    expect(deleted).toEqual([`EXECUTION ${run.executionId} 5`, `WORKFLOW ${id} deleted`]);
    await me.ok("DELETE", "/agents/a");
    expect(await stream.words(1)).toEqual(["AGENT a deleted"]);
  });

  test("kinds that are none are refused", async () => {
    const { me } = await newDevice(server);
    const requests: MessageInitShape<typeof SubscribeRequestSchema>[] = [
      { kinds: [UpdateKind.READY] },
      { kinds: [99 as UpdateKind] },
      { heartbeat: { seconds: 0n, nanos: 5e8 } },
      { since: -1n },
      { since: 2n ** 53n },
      { types: [""] },
    ];
    for (const request of requests) {
      await using stream = open(me, request);
      const failure = await failureOf(stream.next());
      expect([failure.code, reasonOf(failure)]).toEqual([Code.InvalidArgument, "VALIDATION_ERROR"]);
    }
  });
});
