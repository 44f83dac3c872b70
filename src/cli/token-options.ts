import type { OptionTable } from "./options.ts";

/** Who a token or a client is for, and what it may do. */
export const grantOptions = {
  sub: { kind: "text", placeholder: "OWNER", required: true, help: "the owner it speaks for" },
  agent: {
    kind: "text",
    placeholder: "ID",
    otherwise: "any",
    help: "the only agent that it may speak for",
  },
  scope: {
    kind: "text",
    placeholder: "GROUPS",
    otherwise: "all",
    help:
      "what it may call, of sync, workflows, agents, executions, tasks; an agent needs " +
      "agents,tasks",
  },
} as const satisfies OptionTable;
