import type { Scenario } from "./scenario.ts";
import { idlePolls } from "./scenarios/idle-polls.ts";
import { idleSubscribers } from "./scenarios/idle-subscribers.ts";
import { pushToSubscriber } from "./scenarios/push-to-subscriber.ts";
import { pushBatch50, pushSingleGrpc } from "./scenarios/pushes.ts";
import { scale } from "./scenarios/scale.ts";
import { soak } from "./scenarios/soak.ts";
import { start } from "./scenarios/start.ts";
import { taskPairs } from "./scenarios/task-pairs.ts";
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
  taskPairs,
  pushToSubscriber,
  scale,
  idlePolls,
  idleSubscribers,
  start,
  soak,
];
