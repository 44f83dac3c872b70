// Runs in the browser: does what a page of an application would, and reports each step to the
// server that it came from.
import { connect, reasonOf, UpdateKind } from "../../src/client/client.ts";

interface Given {
  readonly server: string;
  readonly token: string;
}

const given: Given = await (await fetch("/given.json")).json();
const sealflow = connect(given.server, { token: given.token, agentId: "browser" });

await step("list", async () => {
  const { workflows, total } = await sealflow.workflows.listWorkflows({});
  return { names: workflows.map(({ name }) => name), total };
});
await step("refusal", async () => {
  const refused = sealflow.workflows.getWorkflow({ id: "wf_none" });
  return await refused.then(
    () => "none",
    (error: unknown) => reasonOf(error)?.reason ?? "unreadable",
  );
});
await step("rest", async () => {
  const response = await fetch(`${given.server}/api/v1/workflows`, {
    headers: { authorization: `Bearer ${given.token}`, "x-agent-id": "browser" },
  });
  const { total } = await response.json();
  return { total, limit: response.headers.get("x-ratelimit-limit") };
});
await step("stream", async () => {
  for await (const { kind, record } of sealflow.sync.subscribe({})) {
    if (kind === UpdateKind.UP_TO_DATE) await report("subscribed", { ok: true });
    if (kind === UpdateKind.STATE_UPSERTED) return [record?.entityId, record?.encryptedData];
  }
  return "it ended";
});

async function step(name: string, act: () => Promise<unknown>): Promise<void> {
  const outcome = await act().then(
    (ok) => ({ ok }),
    (error: unknown) => ({ failed: String(error) }),
  );
  await report(name, outcome);
}

async function report(name: string, outcome: unknown): Promise<void> {
  await fetch("/report", { method: "POST", body: JSON.stringify({ [name]: outcome }) });
}
