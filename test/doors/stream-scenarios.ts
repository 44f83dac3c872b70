import { expect } from "vitest";
import type { Answer, Stage } from "./scenarios.ts";

/** What who subscribes sees, until all that is there has been said. */
export const streamScenarios: Record<string, (stage: Stage) => Promise<void>> = {
  async "a stream of records, and where to go on"({ ok, refused }) {
    const push = (entityId: string, more: object = {}, agent = "laptop") =>
      ok(
        "pushState",
        { type: "note", entityId, encryptedData: "eA==", version: "1", ...more },
        { agent },
      );
    expect(inWords(await ok("subscribe", {}))).toEqual(["ready", "up_to_date"]);
    await push("a");
    await push("b", { type: "todo" }, "phone");
    await push("a", { version: "2", deleted: true, encryptedData: "" });
    await push("c");
    const all = await ok("subscribe", { since: 0 });
    expect(inWords(all)).toEqual([
      ...["ready", "state_upserted b", "state_upserted c", "up_to_date"],
    ]);
    expect(all.updates[1].record).toMatchObject({ entityId: "b", encryptedData: "eA==" });
    const { cursor } = all.updates[1];
    const rest = await ok("subscribe", { since: cursor, heartbeat: 60 });
    expect(inWords(rest)).toEqual([
      ...["ready", "state_deleted a", "state_upserted c", "up_to_date"],
    ]);
    expect(rest.updates[0].cursor).toBe(cursor);
    const filters = { since: 1, types: ["note", "todo"], excludeOwn: true };
    const others = await ok("subscribe", filters, { agent: "laptop" });
    expect(inWords(others)).toEqual(["ready", "state_upserted b", "up_to_date"]);
    const deleted = await ok("subscribe", { since: 1, kinds: ["state_deleted"] });
    expect(inWords(deleted)).toEqual(["ready", "state_deleted a", "up_to_date"]);
    expect(inWords(await ok("subscribe", { since: 0 }, { stranger: true }))).toEqual([
      ...["ready", "up_to_date"],
    ]);
    const ahead = { since: rest.updates.at(-1).cursor + 1_000_000 };
    await refused("SYNC_CURSOR_AHEAD", "subscribe", ahead);
  },

  async "a stream of changes"({ ok }) {
    const { id } = await ok("createWorkflow", { name: "w" });
    const run = await ok("executeWorkflow", { id, wait: 0 });
    await ok("registerAgent", { id: "a", type: "worker" });
    const other = await ok("createWorkflow", { name: "other" });
    await ok("deleteWorkflow", { id: other.id });
    const kinds = ["workflow", "execution", "agent"];
    const { updates } = await ok("subscribe", { since: 1, kinds });
    const changes = updates.flatMap(({ change }: Answer) => change ?? []);
    const told = changes.map(({ id: of, status = "" }: Answer) => `${of} ${status}`);
    expect(told.sort()).toEqual(
      [`${id} pending`, `${run.executionId} pending`, "a active", `${other.id} `].sort(),
    );
  },

  async "rules of a stream"({ refused }) {
    const wrong = [
      ...[{ since: -1 }, { since: 2 ** 53 }, { heartbeat: 0 }, { heartbeat: 0.5 }],
      ...[{ types: [""] }, { entityIds: ["x".repeat(257)] }],
    ];
    for (const request of wrong) {
      const details = await refused("VALIDATION_ERROR", "subscribe", request);
      expect(details.fields).toHaveLength(1);
    }
    await refused("UNAUTHORIZED", "subscribe", {}, { headers: { authorization: "Bearer x" } });
  },
};

function inWords({ updates }: Answer): string[] {
  return updates.map(({ kind, record }: Answer) =>
    record === undefined ? kind : `${kind} ${record.entityId}`,
  );
}
