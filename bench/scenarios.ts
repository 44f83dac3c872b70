import type { Scenario } from "./scenario.ts";
import { createWorkflowGrpc, getWorkflowGrpc } from "./scenarios/workflows-grpc.ts";
import { getWorkflowRest, listWorkflowsRest } from "./scenarios/workflows-rest.ts";

/** All that is measured, in the order in which it is. */
export const scenarios: readonly Scenario[] = [
  getWorkflowGrpc,
  createWorkflowGrpc,
  getWorkflowRest,
  listWorkflowsRest,
];
