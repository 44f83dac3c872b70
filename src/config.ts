import type { SharedSecret } from "./calls/auth/token-issuers.ts";
import type { RateLimits } from "./calls/rate-limits.ts";

/** All that a server is told. Every limit that is a setting is here, with its unit. */
export interface ServerConfig {
  /** To listen on. */
  readonly host: string;
  /** 0: any free port. */
  readonly httpPort: number;
  readonly grpcPort: number;
  /** Holds the keys and, unless it is elsewhere, the database. */
  readonly dataDir: string;
  /** The SQLite file. */
  readonly databasePath: string;
  /** 32 bytes, base64url, in place of the key file of the data directory. */
  readonly masterKey?: string;
  readonly sharedSecret?: SharedSecret;
  readonly rateLimits: RateLimits;
  /** Origins of browsers that may read answers; `*` for any. */
  readonly corsOrigins: readonly string[];
  /** Addresses or CIDR blocks whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  readonly accessLog: boolean;
  /** Whether plain gRPC has a lane of its own; else the Connect adapter serves that too. */
  readonly grpcLane: boolean;
  /** How long an agent may be silent before it is inactive. */
  readonly agentSilenceMs: number;
  /** How long an execution is kept after its end. */
  readonly executionKeptMs: number;
}
