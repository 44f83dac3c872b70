import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { serverAddress } from "./server-address.ts";

/** A client of the token endpoint, as `sealflow client add` prints it. */
export interface ClientCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

interface HeldToken {
  readonly text: string;
  /** On the monotonic clock. */
  readonly renewAtMs: number;
}

/** A token is renewed after this part of its life. */
const renewAfter = 0.8;

/**
 * A token source that gets its tokens from the server by OAuth 2.0 client credentials (RFC 6749
 * section 4.4), keeps each for most of its life, and gets another when the server refuses one.
 * Calls at the same time share one request. Fails with a ConnectError: UNAUTHENTICATED when the
 * client is not known, UNAVAILABLE or RESOURCE_EXHAUSTED when it is worth trying again.
 */
export function clientCredentials(
  server: string,
  client: ClientCredentials,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): (refused?: string) => Promise<string> {
  const request = tokenRequest(server, client);
  let held: HeldToken | undefined;
  let pending: Promise<HeldToken> | undefined;
  return async (refused) => {
    if (held !== undefined && held.text !== refused && performance.now() < held.renewAtMs) {
      return held.text;
    }
    pending ??= fetchToken(request, fetch).finally(() => {
      pending = undefined;
    });
    held = await pending;
    return held.text;
  };
}

function tokenRequest(server: string, { clientId, clientSecret }: ClientCredentials) {
  // RFC 6749 section 2.3.1: both parts are form-encoded before they are joined.
  const basic = btoa(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`);
  return {
    url: `${serverAddress(server)}/api/v1/auth/token`,
    init: {
      method: "POST",
      redirect: "error",
      headers: {
        authorization: `Basic ${basic}`,
        "content-type": "application/x-www-form-urlencoded",
      },
      body: "grant_type=client_credentials",
    },
  } as const;
}

async function fetchToken(
  { url, init }: ReturnType<typeof tokenRequest>,
  fetch: typeof globalThis.fetch,
): Promise<HeldToken> {
  const askedAtMs = performance.now();
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(30_000) }).catch(
    (error: unknown) => {
      throw new ConnectError(
        "The token endpoint cannot be reached",
        Code.Unavailable,
        {},
        [],
        error,
      );
    },
  );
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw refusal(response);
  const text = member(answer, "access_token");
  const seconds = Number(member(answer, "expires_in") ?? 300);
  if (typeof text !== "string" || !(seconds > 0)) {
    throw new ConnectError("The token endpoint answered without a token", Code.Unavailable);
  }
  return { text, renewAtMs: askedAtMs + seconds * 1000 * renewAfter };
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}

function refusal(response: Response): ConnectError {
  if (response.status === 429) {
    const seconds = BigInt(response.headers.get("retry-after")?.match(/^\d{1,6}$/)?.[0] ?? "10");
    return new ConnectError("Too many tokens asked for", Code.ResourceExhausted, {}, [
      detail(ErrorInfoSchema, { reason: "RATE_LIMITED", domain: "sealflow" }),
      detail(RetryInfoSchema, { retryDelay: { seconds } }),
    ]);
  }
  if (response.status >= 500) {
    return new ConnectError(`The token endpoint answered ${response.status}`, Code.Unavailable);
  }
  return new ConnectError("The client credentials were refused", Code.Unauthenticated, {}, [
    detail(ErrorInfoSchema, { reason: "UNAUTHORIZED", domain: "sealflow" }),
  ]);
}

function detail<Desc extends DescMessage>(desc: Desc, value: MessageInitShape<Desc>) {
  return { desc, value: create(desc, value) };
}
