/** The groups of calls that limits and scopes speak of. */
export type Group = "auth" | "sync" | "workflows" | "agents" | "executions" | "tasks";
