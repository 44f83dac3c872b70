import { randomUUID } from "node:crypto";
import type { Caller } from "./caller.ts";
import type { Tried } from "./history.ts";

const deeds = { execute: 50, again: 10, look: 25, watch: 5, cancel: 10 };

/** Wants executions of its workflows, looks at them, changes its mind. */
export async function playClient(caller: Caller): Promise<void> {
  const workflowId = await makeWorkflow(caller);
  if (workflowId === undefined) return;
  while (!caller.isStopped) {
    await act(caller, workflowId);
    await caller.pause(caller.random.between(0.1, 1.2));
  }
}

async function makeWorkflow(caller: Caller): Promise<string | undefined> {
  const request = { name: "chaos", encryptedData: "sealed", requestId: randomUUID() };
  const { outcome } = await caller.untilAnswered("createWorkflow", request);
  return outcome !== "unknown" && "ok" in outcome ? String(outcome.ok["id"]) : undefined;
}

async function act(caller: Caller, workflowId: string): Promise<void> {
  const { history, random } = caller;
  const known = random.pick(history.accepted);
  const deed = known === undefined ? "execute" : random.choose(deeds);
  if (deed === "execute" || known === undefined)
    return execute(caller, newWish(caller, workflowId));
  const { executionId, key } = known;
  if (deed === "look") return void (await caller.look(executionId));
  if (deed === "watch") return void (await caller.look(executionId, 5));
  if (deed === "cancel") return cancel(caller, executionId);
  const wish = history.tried.find((tried) => tried.key === key);
  if (wish !== undefined) await execute(caller, wish);
}

function newWish({ random, history }: Caller, workflowId: string): Tried {
  const wish = {
    key: randomUUID(),
    workflowId,
    atMostOnce: random.chance(0.25),
    maxAttempts: random.whole(1, 4),
    timeoutS: random.whole(5, 40),
    startTimeoutS: random.whole(5, 60),
  };
  history.tried.push(wish);
  return wish;
}

/** The same wish again must give the same execution. */
async function execute(caller: Caller, wish: Tried): Promise<void> {
  const wait = caller.random.chance(0.3) ? caller.random.whole(1, 5) : 0;
  const { outcome, ...times } = await caller.untilAnswered("executeWorkflow", {
    id: wish.workflowId,
    requestId: wish.key,
    input: { key: wish.key },
    atMostOnce: wish.atMostOnce,
    maxAttempts: wish.maxAttempts,
    timeout: `${wish.timeoutS}s`,
    startTimeout: `${wish.startTimeoutS}s`,
    wait,
  });
  if (outcome === "unknown") return;
  if ("ok" in outcome) {
    const { executionId } = caller.note(outcome.ok, times);
    caller.history.accepted.push({ key: wish.key, executionId, ...times });
  } else if (outcome.reason === "TASK_TIMED_OUT") {
    const executionId = String(outcome.details["executionId"]);
    caller.history.accepted.push({ key: wish.key, executionId, ...times });
  } else {
    caller.history.faults.push(`execute was refused: ${outcome.reason}`);
  }
}

async function cancel(caller: Caller, executionId: string): Promise<void> {
  const { outcome, ...times } = await caller.untilAnswered("cancelExecution", { id: executionId });
  if (outcome === "unknown") return;
  if ("ok" in outcome) {
    const { status } = caller.note(outcome.ok, times);
    caller.history.cancels.push({ executionId, status, answeredMs: times.answeredMs });
  } else {
    caller.history.faults.push(`cancel was refused: ${outcome.reason}`);
  }
}
