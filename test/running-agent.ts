import { Code, ConnectError } from "@connectrpc/connect";
import {
  type AgentEvent,
  type AgentOptions,
  runAgent,
  type TaskHandler,
} from "../src/client/agent.ts";
import { FakeAgentService } from "./fake-agent-service.ts";

/** The server cannot be reached for one call. */
export const unavailable = () => new ConnectError("away", Code.Unavailable);

/** An agent beside a server that is a fake, and what it told so far. */
export interface Running {
  readonly server: FakeAgentService;
  readonly events: AgentEvent[];
  readonly kinds: () => string[];
  /** Drains it and waits for its end. */
  stop(): Promise<void>;
  readonly ended: Promise<void>;
}

type Settings = Partial<Omit<AgentOptions, "server" | "token" | "credentials" | "transport">> & {
  readonly server?: FakeAgentService;
};

export function start(
  handler: TaskHandler,
  { server = new FakeAgentService(), ...settings }: Settings = {},
): Running {
  const events: AgentEvent[] = [];
  const drain = new AbortController();
  const options: AgentOptions = {
    server: "http://fake",
    token: "token",
    id: "worker",
    transport: server.transport,
    random: () => 0,
    onEvent: (event) => events.push(event),
    signal: drain.signal,
    ...settings,
  };
  const ended = runAgent(options, handler);
  // A test that awaits it later must not fail before.
  ended.catch(() => {});
  const stop = () => {
    drain.abort();
    return ended;
  };
  return { server, events, kinds: () => events.map(({ kind }) => kind), stop, ended };
}

export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await sleep(5);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Works until it is told to stop. */
export const endless: TaskHandler = (_task, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
