import { VoidRound } from "../load/closed-loop.ts";
import { h2load } from "../load/h2load.ts";
import { type Contender, compare, wrongAnswer } from "../measure/compare.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { httpPort } from "../servers/callers.ts";
import { type Contestants, startContestants } from "../servers/contestants.ts";
import { payload } from "../servers/fill.ts";
import type { Server } from "../servers/server.ts";

const connections = 32;
const listed = 20;

export const getWorkflowRest: Scenario = {
  name: "get-workflow-rest",
  about: "GET /workflows/:id, against Fastify, silent and with its logger on",
  usesH2load: true,
  async run(bench) {
    const contestants = await startContestants(bench, ["fastify", "fastify+log"]);
    const { workflowId: id } = contestants;
    return measure(bench, contestants, {
      title: "GET /workflows/:id",
      path: `/workflows/${id}`,
      isRight: (body) =>
        hasField(body, "id", (it) => it === id) &&
        hasField(body, "encryptedData", (it) => it === payload),
    });
  },
};

export const listWorkflowsRest: Scenario = {
  name: "list-workflows-rest",
  about: `GET /workflows?limit=${listed} among 10,000, against Fastify`,
  usesH2load: true,
  async run(bench) {
    const contestants = await startContestants(bench, ["fastify", "fastify+log"]);
    return measure(bench, contestants, {
      title: `GET /workflows?limit=${listed}`,
      path: `/workflows?limit=${listed}`,
      isRight: (body) =>
        hasField(body, "workflows", (it) => Array.isArray(it) && it.length === listed) &&
        hasField(body, "total", (it) => it === 10_000),
    });
  },
};

interface Measured {
  readonly title: string;
  readonly path: string;
  isRight(body: unknown): boolean;
}

async function measure(
  bench: Bench,
  { servers, fields }: Contestants,
  { title, path, isRight }: Measured,
) {
  const headers = Object.fromEntries(fields);
  const urlOf = (server: Server) => `http://127.0.0.1:${httpPort(server)}/api/v1${path}`;
  const contender = (server: Server): Contender => ({
    server,
    async verify() {
      const answer = await fetch(urlOf(server), { headers });
      if (answer.status !== 200 || !isRight(await answer.json())) throw wrongAnswer(server);
    },
    async load(seconds) {
      const url = urlOf(server);
      const asked = { url, headers, http1: true, connections, streams: 1, seconds };
      const { perSecond, succeeded, failed } = await h2load(asked);
      if (failed > 0) throw new VoidRound(`${server.name}: ${failed} failed`);
      return { count: succeeded, perSecond };
    },
  });
  return compare(bench, {
    title: `${title}, REST over HTTP/1.1, ${connections} connections`,
    unit: "call",
    contenders: servers.map(contender),
  });
}

function hasField(body: unknown, name: string, isRight: (value: unknown) => boolean): boolean {
  return typeof body === "object" && body !== null && isRight(Reflect.get(body, name));
}
