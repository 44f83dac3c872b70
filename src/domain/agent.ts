/** Whether an agent has been heard of lately. */
export type AgentStatus = "active" | "inactive";

export interface Agent {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  readonly type: string;
  /** Sorted, without duplicates. */
  readonly capabilities: readonly string[];
  readonly status: AgentStatus;
  readonly isPublic: boolean;
  readonly registeredUs: number;
  readonly lastSeenUs: number;
}

/** One agent of one owner: what is stored wherever an agent is named. */
export interface AgentName {
  readonly owner: string;
  readonly id: string;
}
