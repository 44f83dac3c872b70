import { SyncService } from "../../gen/sealflow/v1/sync_pb.ts";
import { closedLoop, VoidRound } from "../load/closed-loop.ts";
import type { GrpcConnection } from "../load/grpc-connection.ts";
import { type PushBodies, pushBodies } from "../load/push-bodies.ts";
import { blockOf } from "../load/rpc.ts";
import { unary } from "../load/unary.ts";
import { type Contender, compare, wrongAnswer } from "../measure/compare.ts";
import type { Bench, Finding, Scenario } from "../scenario.ts";
import { openConnections } from "../servers/alone.ts";
import { rpcs } from "../servers/callers.ts";
import { type Contestants, startContestants } from "../servers/contestants.ts";
import { payload } from "../servers/fill.ts";
import type { Server } from "../servers/server.ts";

const pushState = blockOf(SyncService.method.pushState);

export const pushSingleGrpc: Scenario = {
  name: "push-single-grpc",
  about: "PushState, one new record a call; the peers commit each push, synchronous=NORMAL",
  usesH2load: false,
  run: (bench) => measurePushes(bench, { records: 1, connections: 4, callsEach: 16 }),
};

export const pushBatch50: Scenario = {
  name: "push-batch-50",
  about: "PushState, 50 new records a call, keys in order; the peers commit each call",
  usesH2load: false,
  run: (bench) => measurePushes(bench, { records: 50, connections: 4, callsEach: 4 }),
};

interface Width {
  readonly records: number;
  readonly connections: number;
  readonly callsEach: number;
}

async function measurePushes(bench: Bench, width: Width): Promise<Finding> {
  const contestants = await startContestants(bench, ["grpc-js", "connect"]);
  const contenders: Contender[] = [];
  for (const server of contestants.servers) {
    contenders.push(await pusher(bench, { ...contestants, server }, width));
  }
  const { records, connections, callsEach } = width;
  const title = `PushState of ${records}, gRPC, ${connections} connections x ${callsEach} calls`;
  return compare(bench, { title, unit: "record", contenders });
}

async function pusher(
  bench: Bench,
  { server, fields }: Contestants & { readonly server: Server },
  { records, connections, callsEach }: Width,
): Promise<Contender> {
  const connectionOf = await openConnections(bench, server, { count: connections, fields });
  const bodies = pushBodies(records);
  return {
    server,
    async verify() {
      const { sync } = rpcs(server, fields);
      const record = { type: "checked", version: "1", encryptedData: payload };
      const entityId = crypto.randomUUID();
      const { record: pushed } = await sync.pushState({ ...record, entityId });
      if (pushed?.entityId !== entityId || pushed.revision !== 1n) throw wrongAnswer(server);
    },
    async load(seconds) {
      const { count } = await closedLoop({ width: connections * callsEach, seconds }, (caller) =>
        push(connectionOf(caller), bodies),
      );
      return { count: count * records, perSecond: (count * records) / seconds };
    },
  };
}

async function push(connection: GrpcConnection, bodies: PushBodies): Promise<void> {
  const answer = await unary(connection, pushState, bodies.next());
  if (!bodies.isAllCreated(answer)) throw new VoidRound("a record was not made");
}
