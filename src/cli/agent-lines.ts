import type { AgentEvent } from "../client/agent.ts";
import { causeOf } from "./call-failure.ts";

export interface AgentFacts {
  readonly id: string;
  readonly server: string;
  readonly capabilities: readonly string[];
  readonly concurrency: number;
}

/** What people see of an agent. */
export interface AgentLines {
  onEvent(event: AgentEvent): void;
  /** How it ended, once it has drained. */
  end(): void;
}

const milliseconds = new Intl.NumberFormat("en", { maximumFractionDigits: 0, useGrouping: false });
const seconds = new Intl.NumberFormat("en", { maximumFractionDigits: 1, useGrouping: false });

/** Writes a line for what happens on stdout, and on stderr for what goes wrong on the way. */
export function createAgentLines(facts: AgentFacts): AgentLines {
  const { id } = facts;
  const endings: { taskId: string; words: "finished" | "gave back" | "lost" }[] = [];
  let isDraining = false;
  let lastTrouble = "";
  const say = (line: string) => process.stdout.write(`${line}\n`);

  function onTaskEnd(event: TaskEnded): void {
    say(`${event.taskId}  attempt ${event.attempt}  ${endText(event)}`);
    if (isDraining) endings.push({ taskId: event.taskId, words: endingWords[event.kind] });
  }
  /** The same trouble again and again is said once. */
  function onTrouble(event: Extract<AgentEvent, { kind: "retrying" }>): void {
    const line = `${id}: ${event.call} failed: ${causeOf(event.error)}`;
    if (line === lastTrouble) return;
    lastTrouble = line;
    process.stderr.write(`${line}. Trying again until it succeeds\n`);
  }
  return {
    onEvent(event) {
      switch (event.kind) {
        case "registered":
          lastTrouble = "";
          say(`${id}: ${event.again ? "registered again" : registeredText(facts)}`);
          return;
        case "draining":
          isDraining = true;
          say(`${id}: draining, ${event.held} held. Ctrl-C once more kills at once`);
          return;
        case "retrying":
          return onTrouble(event);
        case "granted":
          lastTrouble = "";
          return;
        case "stopping":
          return;
        default:
          return onTaskEnd(event);
      }
    },
    end() {
      const groups = Object.groupBy(endings, ({ words }) => words);
      const texts = Object.entries(groups).map(
        ([words, tasks]) => `${words} ${tasks.map(({ taskId }) => taskId).join(", ")}`,
      );
      say(`${id}: stopped; ${texts.length === 0 ? "nothing was held" : texts.join("; ")}`);
    },
  };
}

type TaskEnded = Extract<
  AgentEvent,
  { kind: "completed" | "failed" | "cancelled" | "released" | "lost" }
>;

const endingWords = {
  completed: "finished",
  failed: "finished",
  cancelled: "finished",
  released: "gave back",
  lost: "lost",
} as const satisfies Record<TaskEnded["kind"], string>;

function endText(event: TaskEnded): string {
  const time = timeText(event.elapsedMs);
  switch (event.kind) {
    case "completed":
    case "cancelled":
      return `${event.kind} in ${time}`;
    case "failed":
      return `failed in ${time}: ${event.code}, ${event.message.split("\n", 1)[0]}`;
    case "released":
      return `given back after ${time}`;
    case "lost":
      return `lost after ${time}${event.error === undefined ? "" : `: ${causeOf(event.error)}`}`;
  }
}

function registeredText({ server, capabilities, concurrency }: AgentFacts): string {
  const can =
    capabilities.length === 0 ? "no capabilities" : `capabilities ${capabilities.join(", ")}`;
  return `registered at ${server}, ${can}, ${concurrency} at a time`;
}

function timeText(ms: number): string {
  return ms < 10_000 ? `${milliseconds.format(ms)} ms` : `${seconds.format(ms / 1000)} s`;
}
