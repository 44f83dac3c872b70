import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Door, doorNames, openDoor, type Reply } from "./doors.ts";
import { type CallAs, type Stage, scenarios } from "./scenarios.ts";
import { startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let laneless: TestServer;

beforeAll(async () => {
  [server, laneless] = await Promise.all([startTestServer(), startTestServer({ grpcLane: false })]);
});

afterAll(() => Promise.all([server, laneless].map((it) => it[Symbol.asyncDispose]())));

/** The doors, and that of gRPC as the Connect adapter serves it. */
const ways = [...doorNames, "grpc without its lane"] as const;

function openWay(way: (typeof ways)[number]): { readonly door: Door; readonly at: TestServer } {
  if (way === "grpc without its lane") return { door: openDoor("grpc", laneless), at: laneless };
  return { door: openDoor(way, server), at: server };
}

const transcripts = new Map<string, unknown[]>();

describe.each(ways)("through %s", (way) => {
  test.each(Object.keys(scenarios))("%s", async (name) => {
    const said: unknown[] = [];
    const { door, at } = openWay(way);
    await scenarios[name]?.(await stageFor(door, said, { owner: `${way} ${name}`, at }));
    transcripts.set(`${way} ${name}`, settled(said));
  });
});

test.each(Object.keys(scenarios))("every door says the same: %s", (name) => {
  const [first, ...others] = ways.map((way) => transcripts.get(`${way} ${name}`));
  expect(first?.length).toBeGreaterThan(0);
  for (const other of others) expect(other).toEqual(first);
});

/** An owner of its own, so that no scenario meets another. */
async function stageFor(
  door: Door,
  said: unknown[],
  { owner, at }: { readonly owner: string; readonly at: TestServer },
): Promise<Stage> {
  const token = await at.token({ sub: owner });
  const strangersToken = await at.token({ sub: `not ${owner}` });
  const call: Stage["call"] = async (rpc, request, as: CallAs = {}) => {
    const who = {
      token: as.stranger === true ? strangersToken : token,
      agentId: as.agent ?? "laptop",
    };
    const reply = await door.call(who, rpc, request, as.headers);
    said.push({ rpc, agent: who.agentId, reply });
    return reply;
  };
  return {
    call,
    async ok(rpc, request, as) {
      const reply: Reply = await call(rpc, request, as);
      if ("ok" in reply) return reply.ok;
      throw new Error(`${rpc} failed: ${reply.reason} ${JSON.stringify(reply.details)}`);
    },
    async refused(reason, rpc, request, as) {
      const reply = await call(rpc, request, as);
      expect("reason" in reply ? reply.reason : `OK ${JSON.stringify(reply)}`).toBe(reason);
      return "details" in reply ? reply.details : {};
    },
  };
}

const volatile =
  /(wf|ex)_[0-9a-z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z|"\d+(\.\d+)?s"|[0-9a-f]{8}-[0-9a-f-]{27}/g;

/** A list of REST shows four fields of a workflow; what the others hold beside them is no matter. */
const listed = ["id", "name", "status", "createdAt"];

const changing = ["leaseToken", "leaseLeft", "cursor", "prevCursor", "nextPageToken", "message"];

function withoutSecrets(key: string, value: unknown): unknown {
  if (changing.includes(key)) return "…";
  if (key !== "workflows") return value;
  return (value as object[]).map((item) =>
    Object.fromEntries(Object.entries(item).filter(([name]) => listed.includes(name))),
  );
}

/** The transcript without what differs from run to run, in the order of its calls' rpcs. */
function settled(said: readonly unknown[]): unknown[] {
  return said.map((line) => JSON.stringify(line, withoutSecrets).replace(volatile, "…")).sort();
}
