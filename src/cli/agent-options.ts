import type { AgentOptions } from "../client/agent.ts";
import { serverAddress } from "../client/server-address.ts";
import { dataOptions } from "./data-options.ts";
import { UsageError } from "./exit.ts";
import type { OptionTable, Values } from "./options.ts";
import { readCount, readDurationMs } from "./read-values.ts";
import { checkKey } from "./sealing-options.ts";

/** What `agent` can be told. */
export const agentOptions = {
  id: {
    kind: "text",
    placeholder: "ID",
    required: true,
    help: "the agent's id, 1 to 128 of A-Z a-z 0-9 . _ : -",
  },
  server: {
    kind: "text",
    placeholder: "URL",
    default: "http://127.0.0.1:8080",
    help: "the server's HTTP address",
  },
  type: { kind: "text", placeholder: "TYPE", help: "what kind of agent, in your words" },
  name: { kind: "text", placeholder: "NAME", otherwise: "the id", help: "what people call it" },
  public: { kind: "flag", help: "other owners may see it, and name it to have it work for them" },
  capability: {
    kind: "list",
    placeholder: "C",
    help: "what it can do; it takes only tasks that require nothing else",
  },
  concurrency: {
    kind: "text",
    placeholder: "N",
    default: "1",
    help: "how many tasks at a time, up to 500",
  },
  lease: {
    kind: "text",
    placeholder: "TIME",
    default: "30s",
    help: "how long a task stays its when it falls silent, 5s to 10m",
  },
  drain: {
    kind: "text",
    placeholder: "TIME",
    default: "10s",
    help: "how long tasks may go on after Ctrl-C before they are given back, up to 1h",
  },
  reportStderr: {
    kind: "flag",
    help: "a failure tells the owner the last 4 KiB of stderr too, not only the exit code",
  },
  sub: {
    kind: "text",
    placeholder: "OWNER",
    help: "the owner it works for: signs its own tokens with the key in the data directory",
  },
  ...dataOptions,
  token: { kind: "secret", help: "a token; the agent ends when it expires" },
  clientId: { kind: "secret", help: "a client's id, to get and renew tokens with" },
  clientSecret: { kind: "secret", help: "that client's secret" },
  key: { kind: "secret", help: "opens sealed inputs and payloads; the output is sealed with it" },
} as const satisfies OptionTable;

type AgentValues = Values<typeof agentOptions>;

/** What the agent is, without its credentials. Throws UsageError. */
export function agentSettings(values: AgentValues) {
  const { type, name, key } = values;
  return {
    server: readServer(values.server),
    id: values.id,
    ...(type === undefined ? {} : { type }),
    ...(name === undefined ? {} : { name }),
    ...(key === undefined ? {} : { key: checkKey(key) }),
    isPublic: values.public,
    capabilities: values.capability,
    concurrency: readCount("--concurrency", values.concurrency, [1, 500]),
    leaseMs: readDurationMs("--lease", values.lease, ["5s", "10m"]),
    graceMs: readDurationMs("--drain", values.drain, ["0s", "1h"]),
  } satisfies Omit<AgentOptions, "token" | "credentials">;
}

function readServer(text: string): string {
  try {
    return serverAddress(text);
  } catch {
    throw new UsageError(`--server must be an http or https address, not ${text}`);
  }
}
