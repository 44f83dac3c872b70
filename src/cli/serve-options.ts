import { defaultRateLimits, type RateLimits } from "../calls/rate-limits.ts";
import { dataOptions, masterKeyOption } from "./data-options.ts";
import type { OptionTable } from "./options.ts";

/** What `serve` can be told. */
export const serveOptions = {
  host: {
    kind: "text",
    placeholder: "HOST",
    default: "127.0.0.1",
    help: "the address to listen on",
  },
  httpPort: {
    kind: "text",
    placeholder: "PORT",
    default: "8080",
    help: "the port of REST, Connect and gRPC-Web; 0 for any free one",
  },
  grpcPort: {
    kind: "text",
    placeholder: "PORT",
    default: "7233",
    help: "the port of gRPC; 0 for any free one",
  },
  ...dataOptions,
  plaintext: {
    kind: "flag",
    help: "do not warn when another host than this machine is served without TLS",
  },
  corsOrigins: {
    kind: "list",
    placeholder: "ORIGINS",
    otherwise: "none",
    help: "origins of browsers that may call, e.g. https://app.example; * for any",
  },
  rateLimits: {
    kind: "list",
    placeholder: "LIMITS",
    otherwise: limitsText(defaultRateLimits),
    help: "calls a minute of an owner by group, as GROUP=N or GROUP=off",
  },
  trustedProxies: {
    kind: "list",
    placeholder: "ADDRESSES",
    otherwise: "none",
    help: "addresses or CIDR blocks of proxies whose X-Forwarded-For is believed",
  },
  accessLog: { kind: "flag", help: "log every call that succeeds too" },
  grpcLane: {
    kind: "text",
    placeholder: "on|off",
    default: "on",
    help: "whether plain gRPC has a fast lane of its own; off: the Connect adapter serves it too",
  },
  agentSilence: {
    kind: "text",
    placeholder: "TIME",
    default: "5m",
    help: "how long an agent may be silent before it is inactive",
  },
  executionRetention: {
    kind: "text",
    placeholder: "TIME",
    default: "30d",
    help: "how long an execution is kept after its end",
  },
  jwtIssuer: {
    kind: "text",
    placeholder: "NAME",
    otherwise: "any",
    help: "the iss that tokens signed with SEALFLOW_JWT_SECRET must have",
  },
  jwtAudience: {
    kind: "text",
    placeholder: "NAME",
    otherwise: "any",
    help: "the aud that tokens signed with SEALFLOW_JWT_SECRET must have",
  },
  jwtSecret: {
    kind: "secret",
    help: "also accept HS256 tokens that are signed with this secret, at least 32 bytes",
  },
  ...masterKeyOption,
} as const satisfies OptionTable;

/** As `--rate-limits` takes them. */
function limitsText(limits: RateLimits): string {
  return Object.entries(limits)
    .map(([group, perMinute]) => `${group}=${perMinute ?? "off"}`)
    .join();
}
