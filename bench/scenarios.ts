import type { Scenario } from "./scenario.ts";
import { pushBatch50, pushSingleGrpc } from "./scenarios/pushes.ts";
import { createWorkflowGrpc, getWorkflowGrpc } from "./scenarios/workflows-grpc.ts";
import { getWorkflowRest, listWorkflowsRest } from "./scenarios/workflows-rest.ts";

/** All that is measured, in the order in which it is. */
export const scenarios: readonly Scenario[] = [
  getWorkflowGrpc,
  createWorkflowGrpc,
  pushSingleGrpc,
  pushBatch50,
  getWorkflowRest,
  listWorkflowsRest,
];
