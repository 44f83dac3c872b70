import { describe, expect, test } from "vitest";
import type { Poll, Store } from "../../src/storage/port.ts";
import { executionDraft, makeAgent, makeWorkflow, resultOf } from "./drafts.ts";
import { day, type OpenedStore, second } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";

const poll: Poll = { pollId: "", max: 1, leaseUs: 30 * second, isGone: () => false };
const agent = { owner: "alice", id: "agent-1" };

/** The promises of Store.prune, for any store. Deleted workflows stand with deleteWorkflow. */
export function pruneSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: prune`, () => {
    test("deletes mutation ids after 7 days", async () => {
      await using opened = await open();
      const { store, clock } = opened;
      await push(store, "note-1");
      clock.advance(7 * day);
      await store.prune(10);
      expect(await refusalOf(push(store, "note-2"))).toBe("IDEMPOTENCY_CONFLICT");
      clock.advance(1);
      await store.prune(10);
      expect(await resultOf(push(store, "note-2"))).toMatchObject([{ status: "created" }]);
    });

    test("deletes executions 30 days after their end, with all they left", async () => {
      await using opened = await open();
      const { store, clock } = opened;
      await endedExecution(store);
      const { executions } = store;
      const list = () => executions.listExecutions("alice", { workflowId: "w1", limit: 10 });
      clock.advance(30 * day);
      await store.prune(10);
      expect((await executions.getExecution("alice", "e1")).output).toBe('"done"');
      expect(await list()).toMatchObject({ total: 1 });
      clock.advance(1);
      expect(await store.prune(10)).toStrictEqual({ hasMore: false });
      expect(await refusalOf(executions.getExecution("alice", "e1"))).toBe("EXECUTION_NOT_FOUND");
      expect(await list()).toStrictEqual({ items: [], total: 0, hasMore: false });
      const again = executionDraft({ id: "e2", request });
      expect(await resultOf(executions.createExecution("alice", again))).toMatchObject({
        replayed: false,
        execution: { id: "e2" },
      });
    });

    test("what has not ended stays", async () => {
      await using opened = await open();
      const { store, clock } = opened;
      await makeWorkflow(store, "alice");
      await store.executions.createExecution("alice", executionDraft());
      clock.advance(100 * day);
      await store.prune(10);
      expect((await store.executions.getExecution("alice", "e1")).status).toBe("queued");
    });

    test("at most `limit` rows of each kind; tells whether more is left", async () => {
      await using opened = await open();
      const { store, clock } = opened;
      for (const id of ["w1", "w2", "w3"]) {
        await makeWorkflow(store, "alice", { id, request: { id, fingerprint: "f" } });
        await store.workflows.deleteWorkflow("alice", id);
      }
      clock.advance(30 * day + 1);
      expect(await store.prune(2)).toStrictEqual({ hasMore: true });
      const reused = ["w1", "w2", "w3"].map((id) =>
        makeWorkflow(store, "alice", { id: `${id}-again`, request: { id, fingerprint: "f" } }),
      );
      const outcomes = await Promise.allSettled(reused);
      expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(1);
      expect(await store.prune(2)).toStrictEqual({ hasMore: false });
    });

    test("a workflow that was deleted before its executions are swept leaves no trace", async () => {
      await using opened = await open();
      const { store, clock } = opened;
      await endedExecution(store);
      clock.advance(day);
      await store.workflows.deleteWorkflow("alice", "w1");
      clock.advance(29 * day + 1);
      await store.prune(10);
      expect(await refusalOf(store.executions.getExecution("alice", "e1"))).toBe(
        "EXECUTION_NOT_FOUND",
      );
      clock.advance(day);
      expect(await store.prune(10)).toStrictEqual({ hasMore: false });
      await makeWorkflow(store, "alice");
      const page = await store.executions.listExecutions("alice", { workflowId: "w1", limit: 1 });
      expect(page.total).toBe(0);
    });
  });
}

const request = { id: "r1", fingerprint: "f1" };

async function endedExecution(store: Store): Promise<void> {
  await makeAgent(store, "alice");
  await makeWorkflow(store, "alice");
  await store.executions.createExecution("alice", executionDraft({ request }));
  const { tasks } = await resultOf(store.tasks.grantTasks(agent, poll));
  const leaseToken = tasks[0]?.leaseToken ?? "";
  await store.tasks.completeTask(agent, { taskId: "e1", leaseToken, output: '"done"' });
}

function push(store: Store, entityId: string) {
  const draft = {
    type: "note",
    entityId,
    encryptedData: "ZGF0YQ",
    version: "1.0.0",
    deleted: false,
    mutationId: "m1",
  };
  return store.records.pushRecords("alice", {
    agentId: "agent-1",
    drafts: [draft],
    mode: "single",
  });
}
