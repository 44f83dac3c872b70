import { type Granted, type History, hasEnded, type Reported, type Tried } from "./history.ts";
import type { Outage } from "./server-process.ts";

/** How a history was played. */
export interface Circumstances {
  /** How many service seconds pass in a real one. */
  readonly speed: number;
  readonly outages: readonly Outage[];
  /** Whether the server's wall clock was stepped: then its times say nothing. */
  readonly isClockStepped: boolean;
}

type Check = (history: History, circumstances: Circumstances) => Iterable<string>;

/** A real second or two of a busy machine, beyond what the service promises. */
const slackMs = 2_000;
/** What the server allows: five lost leases beside the failures. */
const lossesMax = 5;

/** What is wrong in what the callers saw, in words; none in a history of a server that is right. */
export function findViolations(history: History, circumstances: Circumstances): string[] {
  return Object.entries(checks).flatMap(([name, check]) =>
    [...check(history, circumstances)].map((text) => `${name}: ${text}`),
  );
}

export const checks = {
  *"no answer shows a fault of the server"({ faults }) {
    yield* faults;
  },

  *"every acknowledged execution exists and has ended"({ accepted, final }) {
    for (const id of new Set(accepted.map(({ executionId }) => executionId))) {
      const end = final.get(id);
      if (end === "missing" || end === undefined) yield `${id} is gone`;
      else if (!hasEnded(end.status)) yield `${id} is ${end.status} for ever`;
    }
  },

  *"a key is one execution"({ tried, accepted, workflows }) {
    const byKey = Map.groupBy(accepted, ({ key }) => key);
    for (const [key, answers] of byKey) {
      const ids = new Set(answers.map(({ executionId }) => executionId));
      if (ids.size > 1) yield `${key} became ${[...ids].join(" and ")}`;
    }
    for (const [workflowId, { total }] of workflows) {
      const keys = tried.filter((each) => each.workflowId === workflowId).length;
      if (total > keys) yield `${workflowId} has ${total} executions of ${keys} keys`;
    }
  },

  *"a terminal state never changes"({ seen, final }) {
    const ends = [...final.values()].filter((end) => end !== "missing");
    for (const looks of Map.groupBy([...seen, ...ends], (look) => look.executionId).values()) {
      const [first] = looks
        .filter(({ status }) => hasEnded(status))
        .sort((a, b) => a.answeredMs - b.answeredMs);
      if (first === undefined) continue;
      for (const look of looks) {
        if (look.sentMs <= first.answeredMs) continue;
        const [was, is] = [first, look].map((each) =>
          [each.status, each.output, each.error].join(),
        );
        if (was !== is) yield `${look.executionId} was ${was} and became ${is}`;
      }
    }
  },

  *"the result is that of the winning token, and an acknowledged one is kept"(history) {
    const completes = history.reported.filter(({ verb }) => verb === "complete");
    const byExecution = Map.groupBy(completes, ({ executionId }) => executionId);
    for (const [id, end] of history.final) {
      if (end === "missing") continue;
      const reports = byExecution.get(id) ?? [];
      const winners = new Set(reports.filter(isOk).map(({ token }) => token));
      if (winners.size > 1) yield `${id} was completed by ${[...winners].join(" and ")}`;
      const [winner] = winners;
      if (winner !== undefined && end.output !== winner) {
        yield `${id}: ${winner} was told that it completed it; it is ${end.status} ${end.output}`;
      }
      if (end.status === "completed" && !reports.some(({ token }) => token === end.output)) {
        yield `${id} has a result that nobody reported: ${end.output}`;
      }
    }
  },

  *"once another attempt was handed out, what an older one says is refused"(history) {
    const grants = Map.groupBy(history.granted, ({ executionId }) => executionId);
    const firstSent = new Map<string, number>();
    for (const { token, verb, sentMs } of history.reported) {
      const known = firstSent.get(`${token} ${verb}`) ?? Number.POSITIVE_INFINITY;
      firstSent.set(`${token} ${verb}`, Math.min(known, sentMs));
    }
    for (const report of history.reported.filter(isOk)) {
      const began = firstSent.get(`${report.token} ${report.verb}`) ?? report.sentMs;
      const newer = successorOf(report, grants.get(report.executionId) ?? []);
      if (newer !== undefined && newer.answeredMs < began) {
        yield `${report.executionId}: ${report.verb} by ${report.token} was taken after ${newer.token}`;
      }
    }
  },

  *"the winner is told so, however often it asks"({ reported, final }) {
    for (const [said, reports] of Map.groupBy(reported, ({ token, verb }) => `${verb} ${token}`)) {
      const [first] = reports.filter(isOk).sort((a, b) => a.answeredMs - b.answeredMs);
      const { executionId, token, verb } = reports[0] as Reported;
      const end = final.get(executionId);
      const hasWon = verb === "complete" && end !== "missing" && end?.output === token;
      for (const { sentMs, answer } of reports) {
        if (answer === "ok" || answer === "unknown") continue;
        if (hasWon) yield `${executionId}: ${said} won and was told ${answer}`;
        else if (first !== undefined && first.answeredMs < sentMs) {
          yield `${executionId}: ${said} was taken, and later told ${answer}`;
        }
      }
    }
  },

  *"a token is one agent's, for one attempt"({ granted }) {
    for (const [token, grants] of Map.groupBy(granted, (grant) => grant.token)) {
      const holders = new Set(
        grants.map(({ executionId, attempt, agentId }) => `${executionId} ${attempt} ${agentId}`),
      );
      if (holders.size > 1) yield `${token} was handed out as ${[...holders].join(" and ")}`;
    }
  },

  *"at_most_once never runs twice after a failure or a lost lease"(history) {
    for (const { id, tokens, wish } of attemptsOf(history)) {
      if (!wish.atMostOnce) continue;
      const releases = history.reported.filter(
        ({ executionId, verb }) => executionId === id && verb === "release",
      );
      const released = new Set(releases.map(({ token }) => token));
      if (tokens.size > released.size + 1) {
        yield `${id} was handed out ${tokens.size} times, and released ${released.size} times`;
      }
    }
  },

  *"attempts stay within what was asked"(history) {
    for (const { id, attempt, wish } of attemptsOf(history)) {
      const most = wish.maxAttempts + lossesMax - 1;
      if (attempt > most) yield `${id} had attempt ${attempt}, of ${most} at most`;
    }
  },

  *"a failure that is final ends it"(history) {
    for (const report of history.reported) {
      if (!isOk(report) || report.verb !== "fail" || !report.isFinal) continue;
      const end = history.final.get(report.executionId);
      if (end === undefined || end === "missing") continue;
      if (end.status !== "failed" && end.status !== "cancelled") {
        yield `${report.executionId} was given up and is ${end.status}`;
      }
    }
  },

  *"a cancel that was accepted ends in a cancel or a result"({ cancels, final }) {
    for (const { executionId, status } of cancels) {
      const end = final.get(executionId);
      if (hasEnded(status) || end === undefined || end === "missing") continue;
      if (end.status !== "cancelled" && end.status !== "completed") {
        yield `${executionId} was cancelled while ${status} and is ${end.status}`;
      }
    }
  },

  *"nothing outlives its time-outs"(history, circumstances) {
    const accepted = new Map(history.accepted.map((each) => [each.executionId, each]));
    const wishes = new Map(history.tried.map((wish) => [wish.key, wish]));
    for (const look of history.seen) {
      const birth = accepted.get(look.executionId);
      const wish = birth && wishes.get(birth.key);
      if (birth === undefined || wish === undefined || hasEnded(look.status)) continue;
      const secondsMax = wish.startTimeoutS + wish.timeoutS;
      const dueMs = birth.answeredMs + (secondsMax * 1000) / circumstances.speed;
      const lateMs = look.sentMs - dueMs - outageMs(circumstances, dueMs, look.sentMs);
      if (lateMs > slackMs) yield `${look.executionId} is ${look.status} ${lateMs} ms too long`;
    }
  },

  *"what times out ends in time"(history, circumstances) {
    if (circumstances.isClockStepped) return;
    const wishes = new Map(history.tried.map((wish) => [wish.key, wish]));
    for (const { key, executionId, sentMs } of history.accepted) {
      const [end, wish] = [history.final.get(executionId), wishes.get(key)];
      if (end === undefined || end === "missing" || end.lifeMs === null || wish === undefined) {
        continue;
      }
      const secondsMax = wish.startTimeoutS + wish.timeoutS;
      const lateMs = end.lifeMs / circumstances.speed - (secondsMax * 1000) / circumstances.speed;
      if (lateMs > slackMs + outageMs(circumstances, sentMs, end.sentMs)) {
        yield `${executionId} ended ${lateMs} ms late`;
      }
    }
  },

  *"a workflow's status is that of its executions"(history) {
    const wishes = new Map(history.tried.map((wish) => [wish.key, wish]));
    const ran = new Set<string>();
    for (const { key, executionId } of history.accepted) {
      const end = history.final.get(executionId);
      const wish = wishes.get(key);
      if (wish === undefined || end === undefined || end === "missing") continue;
      if (end.attempt > 0) ran.add(wish.workflowId);
    }
    for (const [id, { status }] of history.workflows) {
      const isRight = ran.has(id) ? status === "completed" || status === "failed" : true;
      if (!isRight) yield `${id} is ${status}, and all its executions have ended`;
    }
  },
} as const satisfies Record<string, Check>;

function isOk({ answer }: Reported): boolean {
  return answer === "ok";
}

/** The first grant of another token after the report's own was handed out. */
function successorOf({ token }: Reported, grants: readonly Granted[]): Granted | undefined {
  const own = grants.find((grant) => grant.token === token);
  if (own === undefined) return undefined;
  return grants
    .filter((grant) => grant.token !== token && grant.attempt > own.attempt)
    .sort((a, b) => a.answeredMs - b.answeredMs)[0];
}

/** How often each execution was handed out, with what was asked for. */
function attemptsOf({ tried, accepted, granted }: History): readonly {
  readonly id: string;
  readonly tokens: ReadonlySet<string>;
  readonly attempt: number;
  readonly wish: Tried;
}[] {
  const wishes = new Map(tried.map((wish) => [wish.key, wish]));
  const keys = new Map(accepted.map(({ executionId, key }) => [executionId, key]));
  return [...Map.groupBy(granted, ({ executionId }) => executionId)].flatMap(([id, grants]) => {
    const wish = wishes.get(keys.get(id) ?? "");
    if (wish === undefined) return [];
    const tokens = new Set(grants.map(({ token }) => token));
    return [{ id, tokens, attempt: Math.max(...grants.map((grant) => grant.attempt)), wish }];
  });
}

function outageMs({ outages }: Circumstances, fromMs: number, untilMs: number): number {
  return outages.reduce((sum, outage) => {
    const overlap = Math.min(outage.untilMs, untilMs) - Math.max(outage.fromMs, fromMs);
    return sum + Math.max(0, overlap);
  }, 0);
}
