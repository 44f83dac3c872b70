import { expect, test } from "vitest";
import type { ChangeKind } from "../../src/domain/record.ts";
import type { Poll } from "../../src/storage/port.ts";
import { executionDraft, makeAgent, makeWorkflow } from "./drafts.ts";
import { day, minute, type OpenedStore, second } from "./open-store.ts";
import { namesOf, pushSingle, readFeed, readPages } from "./record-drafts.ts";

type Open = () => Promise<OpenedStore>;

const poll: Poll = { pollId: "", max: 1, leaseUs: 30 * second, isGone: () => false };
const all: ReadonlySet<ChangeKind> = new Set(["workflow", "execution", "agent"]);

export function feedChangeSuite(open: Open): void {
  kindSuite(open);
  deletionSuite(open);
}

function kindSuite(open: Open): void {
  test("changes come in the order of the feed, beside records", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeWorkflow(store, "alice");
    await pushSingle(store);
    await makeAgent(store, "alice");
    await makeWorkflow(store, "bob", { id: "w2" });
    expect(namesOf(await readFeed(store, { kinds: all }))).toStrictEqual([
      "workflow/w1",
      "note/n1",
      "agent/agent-1",
    ]);
    const pages = await readPages(store, "alice", { kinds: all, limit: 1 });
    expect(pages.flatMap(namesOf)).toStrictEqual(["workflow/w1", "note/n1", "agent/agent-1"]);
  });

  test("only kinds that are asked for", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeWorkflow(store, "alice");
    await makeAgent(store, "alice");
    expect(namesOf(await readFeed(store))).toStrictEqual([]);
    expect(namesOf(await readFeed(store, { kinds: new Set(["agent"] as const) }))).toStrictEqual([
      "agent/agent-1",
    ]);
  });

  test("types, entity ids and the agent narrow records only", async () => {
    await using opened = await open();
    const { store } = opened;
    await makeWorkflow(store, "alice");
    await pushSingle(store);
    const filters = [{ types: ["x"] }, { entityIds: ["x"] }, { exceptAgentId: "agent-1" }];
    for (const filter of filters) {
      expect(namesOf(await readFeed(store, { kinds: all, ...filter }))).toStrictEqual([
        "workflow/w1",
      ]);
    }
    const without = { kinds: all, withRecords: false, withTombstones: false };
    expect(namesOf(await readFeed(store, without))).toStrictEqual(["workflow/w1"]);
  });

  test("a workflow and an agent, in the words of their kind", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeWorkflow(store, "alice");
    await makeAgent(store, "alice");
    const timeUs = clock.wallUs();
    clock.advance(minute);
    await store.agents.touchAgent("alice", "agent-1");
    const none = { workflowId: "", agentId: "", deleted: false };
    expect((await readFeed(store, { kinds: all })).items).toStrictEqual([
      {
        change: { ...none, kind: "workflow", id: "w1", status: "draft", cursor: timeUs, timeUs },
      },
      {
        change: {
          ...none,
          kind: "agent",
          id: "agent-1",
          status: "active",
          cursor: timeUs + 1,
          timeUs,
        },
      },
    ]);
    await store.agents.retireAgents(clock.wallUs() + 1);
    expect((await readFeed(store, { kinds: all, after: timeUs })).items).toMatchObject([
      { change: { kind: "agent", status: "inactive", timeUs: clock.wallUs() } },
    ]);
  });

  test("an execution, with its workflow and its agent", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    const kinds = new Set(["execution"] as const);
    await makeAgent(store, "alice");
    await makeWorkflow(store, "alice");
    await store.executions.createExecution("alice", executionDraft({ agentId: "agent-1" }));
    const about = { kind: "execution", id: "e1", workflowId: "w1", agentId: "agent-1" };
    expect((await readFeed(store, { kinds })).items).toMatchObject([
      { change: { ...about, status: "queued", deleted: false, timeUs: clock.wallUs() } },
    ]);
    clock.advance(second);
    await store.tasks.grantTasks({ owner: "alice", id: "agent-1" }, poll);
    expect((await readFeed(store, { kinds })).items).toMatchObject([
      { change: { ...about, status: "running", timeUs: clock.wallUs() } },
    ]);
  });
}

function deletionSuite(open: Open): void {
  test("a deleted workflow is told for 30 days", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeWorkflow(store, "alice");
    clock.advance(minute);
    await store.workflows.deleteWorkflow("alice", "w1");
    const gone = { kind: "workflow", id: "w1", status: "", deleted: true, timeUs: clock.wallUs() };
    expect((await readFeed(store, { kinds: all })).items).toMatchObject([{ change: gone }]);
    clock.advance(30 * day);
    expect(namesOf(await readFeed(store, { kinds: all }))).toStrictEqual(["workflow/w1"]);
    clock.advance(1);
    expect(await readFeed(store, { kinds: all })).toMatchObject({ items: [], hasMore: false });
  });

  test("so is a deregistered agent, also when it stays a row", async () => {
    await using opened = await open();
    const { store, clock } = opened;
    await makeAgent(store, "alice");
    clock.advance(minute);
    await store.agents.deregisterAgent("alice", "agent-1");
    const gone = { kind: "agent", id: "agent-1", status: "", deleted: true };
    expect((await readFeed(store, { kinds: all })).items).toMatchObject([
      { change: { ...gone, timeUs: clock.wallUs() } },
    ]);
    clock.advance(30 * day + 1);
    await store.prune(10);
    expect(await readFeed(store, { kinds: all })).toMatchObject({ items: [], hasMore: false });
  });
}
