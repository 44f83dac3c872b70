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
