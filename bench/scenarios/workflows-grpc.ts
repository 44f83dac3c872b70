import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  CreateWorkflowRequestSchema,
  GetWorkflowRequestSchema,
} from "../../gen/sealflow/v1/workflow_pb.ts";
import { VoidRound } from "../load/closed-loop.ts";
import { h2load } from "../load/h2load.ts";
import { type Contender, compare, wrongAnswer } from "../measure/compare.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { grpcPort, type Rpcs, rpcs } from "../servers/callers.ts";
import { type Contestants, startContestants } from "../servers/contestants.ts";
import { payload } from "../servers/fill.ts";
import type { Server } from "../servers/server.ts";

/** gRPC with many calls under way on few connections, as programs call. */
const connections = 4;
const streams = 16;
/** Calls that are under way when h2load stops counting are in one of its counts and not another. */
const wholeShare = 0.95;

export const getWorkflowGrpc: Scenario = {
  name: "get-workflow-grpc",
  about: "GetWorkflow over gRPC, against grpc-js and the plain Connect adapter",
  usesH2load: true,
  async run(bench) {
    const contestants = await startContestants(bench, ["grpc-js", "connect"]);
    const { workflowId: id } = contestants;
    return measure(bench, contestants, {
      rpc: "GetWorkflow",
      schema: GetWorkflowRequestSchema,
      request: { id },
      check: async ({ workflows }) => isStored(await workflows.getWorkflow({ id })),
    });
  },
};

const draft = { name: "Nightly report", description: "sums up the day", encryptedData: payload };

export const createWorkflowGrpc: Scenario = {
  name: "create-workflow-grpc",
  about: "CreateWorkflow over gRPC, durable; the peers commit each write, synchronous=NORMAL",
  usesH2load: true,
  async run(bench) {
    const contestants = await startContestants(bench, ["grpc-js", "connect"]);
    return measure(bench, contestants, {
      rpc: "CreateWorkflow",
      schema: CreateWorkflowRequestSchema,
      request: draft,
      async check({ workflows }) {
        const { id } = await workflows.createWorkflow(draft);
        return isStored(await workflows.getWorkflow({ id }));
      },
    });
  },
};

function isStored(workflow: { readonly encryptedData: string }): boolean {
  return workflow.encryptedData === payload;
}

interface Measured<M extends DescMessage> {
  readonly rpc: string;
  readonly schema: M;
  readonly request: MessageInitShape<M>;
  /** Makes the same call as an ordinary client, and looks at what it is answered. */
  check(rpcs: Rpcs): Promise<boolean>;
}

async function measure<M extends DescMessage>(
  bench: Bench,
  { servers, fields }: Contestants,
  { rpc, schema, request, check }: Measured<M>,
) {
  const bodyFile = join(bench.folder, "body");
  await writeFile(bodyFile, framed(toBinary(schema, create(schema, request))));
  const headers = {
    "content-type": "application/grpc+proto",
    te: "trailers",
    ...Object.fromEntries(fields),
  };
  const contender = (server: Server): Contender => ({
    server,
    async verify() {
      if (!(await check(rpcs(server, fields)))) throw wrongAnswer(server);
    },
    async load(seconds) {
      const url = `http://127.0.0.1:${grpcPort(server)}/sealflow.v1.WorkflowService/${rpc}`;
      const asked = { url, headers, bodyFile, http1: false, connections, streams, seconds };
      const { perSecond, succeeded, failed, bodyBytes } = await h2load(asked);
      // A call that gRPC calls failed has a status of 200, and no body.
      const whole = bodyBytes / payload.length;
      if (failed > 0 || whole < succeeded * wholeShare) {
        throw new VoidRound(`${server.name}: ${failed} failed, ${Math.floor(whole)} had a body`);
      }
      return { count: succeeded, perSecond };
    },
  });
  const title = `${rpc}, gRPC, ${connections} connections x ${streams} calls`;
  return compare(bench, { title, unit: "call", contenders: servers.map(contender) });
}

/** Not compressed, its length in four bytes. */
function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
