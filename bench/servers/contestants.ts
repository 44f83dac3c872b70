import { join } from "node:path";
import type { HeaderField } from "../load/hpack.ts";
import type { Bench } from "../scenario.ts";
import { copyData, makeData } from "./base-data.ts";
import { identity } from "./callers.ts";
import { fillWorkflows, workflowName } from "./fill.ts";
import { type PeerName, startPeer } from "./peer.ts";
import { startSealflow } from "./sealflow.ts";
import type { Server } from "./server.ts";

/** Sealflow and some peers, each on its own copy of the same data, all started. */
export interface Contestants {
  /** Sealflow is the first. */
  readonly servers: readonly Server[];
  /** Who calls, of the owner of the data. */
  readonly fields: readonly HeaderField[];
  /** One of the workflows. */
  readonly workflowId: string;
}

const owner = "bench";
const workflowCount = 10_000;

export async function startContestants(
  bench: Bench,
  peers: readonly PeerName[],
): Promise<Contestants> {
  const { folder, closers } = bench;
  bench.say(`filling in ${workflowCount} workflows`);
  const base = await makeData(join(folder, "sealflow"), (store) =>
    fillWorkflows(store, { owner, count: workflowCount }),
  );
  for (const peer of peers) await copyData(base, join(folder, peer));
  const servers = [closers.use(await startSealflow(bench, base.path))];
  for (const peer of peers) {
    servers.push(closers.use(await startPeer(peer, join(folder, peer), owner)));
  }
  const fields = identity(await base.token(owner));
  return { servers, fields, workflowId: workflowName(workflowCount / 2) };
}
