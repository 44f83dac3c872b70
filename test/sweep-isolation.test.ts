import { expect, test } from "vitest";
import { openSharedStore } from "./sqlite-connection.ts";
import { makeWorkflow } from "./suites/drafts.ts";
import { minute } from "./suites/open-store.ts";
import { queue, see, sweep } from "./suites/work.ts";

test("an execution that the sweeper cannot move keeps back no other", async () => {
  await using shared = await openSharedStore();
  const { store, clock, connection } = shared;
  for (const id of ["w1", "w2"]) {
    await makeWorkflow(store, "alice", { id });
    await queue(store, { id: `e of ${id}`, workflowId: id, startTimeoutUs: minute });
  }
  connection.exec("DELETE FROM workflow WHERE id = 'w1'");
  clock.advance(minute);
  const { result, touched } = await sweep(store);
  expect(touched.executions).toStrictEqual(["e of w2"]);
  expect(result.nextDueUs).toBe(clock.steadyUs());
  expect((await see(store, "e of w2")).status).toBe("timed_out");
  expect((await see(store, "e of w1")).status).toBe("queued");
  await expect(sweep(store)).rejects.toThrow();
});
