import { expect, test } from "vitest";
import { rpcCaller } from "../doors/callers.ts";
import { startKillableServer } from "../doors/killable-server.ts";
import { Follower, pullState, sorted } from "./follower.ts";

const hourMs = 3_600_000;

test("the server's clock steps during pushes: order and completeness hold", async () => {
  await using server = await startKillableServer();
  // Made long ago and good for long, so that no step makes it one of the future or of the past.
  const token = await server.token({
    sub: "me",
    nowMs: Date.now() - 48 * hourMs,
    ttlSeconds: 30 * 24 * 3600,
  });
  const rpc = rpcCaller(server, { token, agentId: "laptop" });
  const live = new Follower();
  const pushed: string[] = [];
  const total = 6 * 50;
  const following = live.read(rpc, () => live.state.size === total);
  for (const stepMs of [0, -hourMs, 0, 24 * hourMs, 0, -hourMs]) {
    server.stepClock(stepMs);
    for (let n = 0; n < 50; n++) {
      const entityId = `n${pushed.length}`;
      pushed.push(`note/${entityId}`);
      await rpc.sync.pushState({ type: "note", entityId, version: "1", encryptedData: "x" });
    }
  }
  await following;
  expect(live.wrongs).toEqual([]);
  expect([...live.state.keys()]).toEqual(pushed);
  const later = new Follower();
  await later.readToEnd(rpc);
  expect(later.wrongs).toEqual([]);
  expect([...later.state.keys()]).toEqual(pushed);
  expect(sorted(await pullState(rpc, 7))).toEqual(sorted(live.state));
}, 60_000);
