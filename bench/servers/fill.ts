import { spans } from "../../src/domain/limits.ts";
import type { Store } from "../../src/storage/port.ts";

/** About what a small encrypted program or state has: 1 KiB of base64. */
export const payload = "c2VhbGVk".repeat(128);

/** Writes that wait together for one commit. */
const together = 5_000;

export interface Filling {
  readonly owner: string;
  readonly count: number;
}

/** As ids are: in the order of their making. */
export function workflowName(number: number): string {
  return `wf_${number.toString().padStart(26, "0")}`;
}

export async function fillWorkflows(store: Store, { owner, count }: Filling): Promise<void> {
  await inGroups(count, (number) =>
    store.workflows.createWorkflow(owner, {
      id: workflowName(number),
      name: `Workflow ${number}`,
      description: "sums up the day",
      encryptedData: payload,
      encryptionKey: "",
      agentId: "",
      allowPublic: false,
      requiredCapabilities: [],
    }),
  );
}

/** `write` for each number from 0, many at a time. */
export async function inGroups(
  count: number,
  write: (number: number) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < count; from += together) {
    const numbers = Array.from({ length: Math.min(together, count - from) }, (_, i) => from + i);
    await Promise.all(numbers.map(write));
  }
}

export async function fillAgents(
  store: Store,
  owner: string,
  agents: readonly { readonly id: string; readonly capabilities: readonly string[] }[],
): Promise<void> {
  await inGroups(agents.length, async (number) => {
    const agent = agents[number];
    if (agent === undefined) return;
    const { id, capabilities } = agent;
    const registration = { id, name: id, type: "bench", capabilities, isPublic: false };
    await store.agents.registerAgent(owner, registration);
  });
}

/** The limit of one owner. */
export const queueMax = 10_000;

/**
 * Queues executions, at most `queueMax`, of one workflow for each set; `sets`: what each requires.
 */
export async function fillQueue(
  store: Store,
  { owner, count }: Filling,
  sets: readonly (readonly string[])[],
): Promise<void> {
  for (const [set, requiredCapabilities] of sets.entries()) {
    await store.workflows.createWorkflow(owner, {
      id: `${owner}-${set}`,
      name: "Queued",
      description: "",
      encryptedData: payload,
      encryptionKey: "",
      agentId: "",
      allowPublic: false,
      requiredCapabilities,
    });
  }
  await inGroups(count, (number) =>
    store.executions.createExecution(owner, {
      id: `ex_${owner}-${number.toString().padStart(10, "0")}`,
      workflowId: `${owner}-${number % sets.length}`,
      agentId: "",
      allowPublic: false,
      input: '{"text":"to be or not to be"}',
      timeoutUs: spans.timeoutUs,
      startTimeoutUs: spans.startTimeoutUs,
      maxAttempts: 3,
      atMostOnce: false,
    }),
  );
}

/** Pushes records; answers the position of the one in the middle. */
export async function fillRecords(store: Store, { owner, count }: Filling): Promise<number> {
  let middle = 0;
  for (let from = 0; from < count; from += recordsAPush) {
    const size = Math.min(recordsAPush, count - from);
    const drafts = Array.from({ length: size }, (_, i) => ({
      type: "note",
      entityId: `note-${(from + i).toString().padStart(12, "0")}`,
      version: "1.0.0",
      encryptedData: payload,
      deleted: false,
      mutationId: "",
    }));
    const { result } = await store.records.pushRecords(owner, {
      agentId: "bench",
      drafts,
      mode: "each",
    });
    const first = result[0];
    if (from <= count / 2 && first?.status === "created") middle = first.record.cursor;
  }
  return middle;
}

const recordsAPush = 500;
