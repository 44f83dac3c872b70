import type { Agent, AgentStatus } from "../../../domain/agent.ts";
import type { AgentQuery, Page, PageKey } from "../../port.ts";
import type { Ledger } from "../ledger.ts";
import { ownAgents, publicAgents } from "./agent-edits.ts";
import { type AgentRow, type AgentRows, toAgent } from "./agent-rows.ts";

interface Sources {
  readonly rows: AgentRows;
  readonly ledger: Ledger;
}

const statuses = ["active", "inactive"] as const satisfies readonly AgentStatus[];
/** Before the first page: newer than anything. */
const beforeAll: PageKey = { createdUs: Number.MAX_SAFE_INTEGER, id: "" };

/** Own agents, then public ones that no own id hides: two lists read as one. */
export function readAgentPage(owner: string, query: AgentQuery, sources: Sources): Page<Agent> {
  const { after, limit } = query;
  const found: AgentRow[] = [];
  if (after === undefined || after.isOwn) {
    found.push(...readPart("own", { owner, query, after, limit: limit + 1 }, sources.rows));
  }
  const rest = limit + 1 - found.length;
  if (rest > 0) {
    const start = after?.isOwn === false ? after : undefined;
    found.push(...readPart("public", { owner, query, after: start, limit: rest }, sources.rows));
  }
  return {
    items: found.slice(0, limit).map(toAgent),
    total: countMatching(owner, query.status, sources),
    hasMore: found.length > limit,
  };
}

interface Part {
  readonly owner: string;
  readonly query: AgentQuery;
  readonly after: PageKey | undefined;
  readonly limit: number;
}

function readPart(whose: "own" | "public", part: Part, rows: AgentRows): AgentRow[] {
  const { owner, query, limit } = part;
  const { createdUs, id } = part.after ?? beforeAll;
  const { status } = query;
  const place = { owner, createdUs, id, limit };
  if (status === undefined) {
    return whose === "own" ? rows.pageOfOwn.all(place) : rows.pageOfPublic.all(place);
  }
  const narrowed = { ...place, status };
  return whose === "own"
    ? rows.pageOfOwnStatus.all(narrowed)
    : rows.pageOfPublicStatus.all(narrowed);
}

function countMatching(
  owner: string,
  status: AgentStatus | undefined,
  { rows, ledger }: Sources,
): number {
  let total = 0;
  for (const it of status === undefined ? statuses : [status]) {
    total += ledger.counted(ownAgents(owner, it));
    const shared = ledger.counted(publicAgents(it));
    if (shared === 0) continue;
    total += shared - (rows.countHidden.get({ owner, status: it })?.n ?? 0);
  }
  return total;
}
