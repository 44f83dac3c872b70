import type { SharedSecret } from "../calls/auth/token-issuers.ts";
import { defaultRateLimits, type RateLimits } from "../calls/rate-limits.ts";
import type { ServerConfig } from "../config.ts";
import type { Group } from "../domain/groups.ts";
import { createAddressOf } from "../doors/address.ts";
import { databasePath } from "./data-options.ts";
import { UsageError } from "./exit.ts";
import type { Values } from "./options.ts";
import { readCount, readDurationMs, readOnOff, readPort } from "./read-values.ts";
import type { serveOptions } from "./serve-options.ts";

export type ServeValues = Values<typeof serveOptions>;

/** What the server is told, checked. Throws UsageError. */
export function serveConfig(values: ServeValues): ServerConfig {
  if (values.httpPort === values.grpcPort && Number(values.httpPort) !== 0) {
    throw new UsageError(`--http-port and --grpc-port are both ${values.httpPort}`);
  }
  const sharedSecret = sharedSecretOf(values);
  const { masterKey } = values;
  return {
    host: values.host,
    httpPort: readPort("--http-port", values.httpPort),
    grpcPort: readPort("--grpc-port", values.grpcPort),
    dataDir: values.dataDir,
    databasePath: databasePath(values),
    ...(masterKey === undefined ? {} : { masterKey }),
    ...(sharedSecret === undefined ? {} : { sharedSecret }),
    rateLimits: readRateLimits(values.rateLimits),
    corsOrigins: values.corsOrigins.map(checkOrigin),
    trustedProxies: values.trustedProxies.map(checkProxy),
    accessLog: values.accessLog,
    grpcLane: readOnOff("--grpc-lane", values.grpcLane),
    agentSilenceMs: readDurationMs("--agent-silence", values.agentSilence, ["1s", "365d"]),
    executionKeptMs: readDurationMs("--execution-retention", values.executionRetention, [
      "1s",
      "3650d",
    ]),
  };
}

function sharedSecretOf({ jwtSecret, jwtIssuer, jwtAudience }: ServeValues) {
  if (jwtSecret === undefined) {
    if (jwtIssuer === undefined && jwtAudience === undefined) return undefined;
    throw new UsageError("--jwt-issuer and --jwt-audience need SEALFLOW_JWT_SECRET");
  }
  return {
    secret: jwtSecret,
    ...(jwtIssuer === undefined ? {} : { issuer: jwtIssuer }),
    ...(jwtAudience === undefined ? {} : { audience: jwtAudience }),
  } satisfies SharedSecret;
}

/** `workflows=50`, `sync=off`. Groups that are not named keep their limit. */
function readRateLimits(entries: readonly string[]): RateLimits {
  const limits: Record<Group, number | null> = { ...defaultRateLimits };
  for (const entry of entries) {
    const [group = "", text = ""] = entry.split("=");
    if (!isGroup(group) || text === "") {
      const groups = Object.keys(defaultRateLimits).join(", ");
      throw new UsageError(
        `--rate-limits must be GROUP=N or GROUP=off with ${groups}, not ${entry}`,
      );
    }
    limits[group] = text === "off" ? null : readCount(`--rate-limits ${group}`, text, [1, 1e9]);
  }
  return limits;
}

function isGroup(name: string): name is Group {
  return Object.hasOwn(defaultRateLimits, name);
}

/** An origin (RFC 6454) is compared letter by letter: one with a path or a slash never matches. */
function checkOrigin(text: string): string {
  if (text === "*" || (URL.canParse(text) && new URL(text).origin === text)) return text;
  throw new UsageError(`--cors-origins must be origins like https://app.example, not ${text}`);
}

function checkProxy(text: string): string {
  try {
    createAddressOf([text]);
    return text;
  } catch {
    throw new UsageError(
      `--trusted-proxies must be addresses or CIDR blocks like 10.0.0.0/8, not ${text}`,
    );
  }
}
