import { setTimeout as pause } from "node:timers/promises";

/**
 * An agent that knows the calls and nothing else: takes one task under the shortest lease, works
 * for `WORK_MS` without a heartbeat, then reports twice a second and prints what it is told. Runs
 * as a program, until it is killed.
 */
async function main({ URL, TOKEN, AGENT = "", WORK_MS }: NodeJS.ProcessEnv): Promise<void> {
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${URL}/api/v1${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${TOKEN}`,
        "x-agent-id": AGENT,
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  };
  const { body } = await post("/tasks/poll", { wait: 30, lease: 5 });
  const [{ id, leaseToken, attempt }] = body.tasks;
  process.stdout.write(`granted attempt ${attempt}\n`);
  await pause(Number(WORK_MS));
  for (;;) {
    const told = await post(`/tasks/${id}/complete`, { leaseToken, output: `by ${AGENT}` });
    process.stdout.write(`told ${told.status} ${JSON.stringify(told.body)}\n`);
    await pause(500);
  }
}

await main(process.env);
