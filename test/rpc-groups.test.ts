import { expect, test } from "vitest";
import { AgentService } from "../gen/sealflow/v1/agent_pb.ts";
import { SyncService } from "../gen/sealflow/v1/sync_pb.ts";
import { WorkflowService } from "../gen/sealflow/v1/workflow_pb.ts";
import { rpcGroups } from "../src/calls/rpc-groups.ts";
import { restRoutes } from "../src/doors/rest/door.ts";

test("the group of an rpc is the first segment of its REST path", () => {
  for (const { method, segments } of restRoutes) {
    expect(rpcGroups.get(method), method.name).toBe(segments[0]);
  }
});

test("every rpc has a route", () => {
  const routed = new Set(restRoutes.map(({ method }) => method));
  const all = [WorkflowService, AgentService, SyncService].flatMap(({ methods }) => methods);
  const without = all.filter((method) => !routed.has(method)).map(({ name }) => name);
  expect(without).toEqual([]);
});
