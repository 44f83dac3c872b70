import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";

/**
 * A token, or what gives one. It is asked for each call, and once more with `refused` set to the
 * token that the server did not take; if it then gives another, the call is sent again.
 */
export type TokenSource = string | ((refused?: string) => string | Promise<string>);

/** Sets `authorization` and `x-agent-id` on every call. */
export function withCredentials(token: TokenSource, agentId: string): Interceptor {
  const giveToken = typeof token === "string" ? () => token : token;
  return (next) => async (request) => {
    const first = await giveToken();
    request.header.set("x-agent-id", agentId);
    request.header.set("authorization", `Bearer ${first}`);
    try {
      return await next(request);
    } catch (error) {
      // The messages of a stream are read once, so only a unary call can be sent again.
      if (request.stream || ConnectError.from(error).code !== Code.Unauthenticated) throw error;
      const second = await giveToken(first);
      if (second === first) throw error;
      request.header.set("authorization", `Bearer ${second}`);
      return await next(request);
    }
  };
}
