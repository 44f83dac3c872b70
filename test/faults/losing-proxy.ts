import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  request as open,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { Address } from "../doors/callers.ts";

/** An answer that the server gave and nobody got. */
export interface LostAnswer {
  readonly path: string;
  readonly idempotencyKey: string;
  readonly status: number;
  readonly text: string;
}

/** A way to the HTTP port of a server that loses answers: the work is done, the line is cut. */
export interface LosingProxy extends AsyncDisposable {
  readonly httpUrl: string;
  /** Oldest first. */
  readonly lost: readonly LostAnswer[];
  /** Resolves once so many answers are lost. */
  whenLost(count: number): Promise<void>;
}

/** `isLost` is asked for each answer, by the path of its request, once it has arrived whole. */
export async function startLosingProxy(
  server: Pick<Address, "httpUrl">,
  isLost: (path: string) => boolean,
): Promise<LosingProxy> {
  const lost: LostAnswer[] = [];
  const onLost = new Set<() => void>();

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { answer, body } = await forward(server, request, response);
    const { url: path = "/", headers } = request;
    if (!isLost(path)) {
      response.writeHead(answer.statusCode ?? 0, answer.headers).end(body);
      return;
    }
    const idempotencyKey = String(headers["idempotency-key"] ?? "");
    lost.push({ path, idempotencyKey, status: answer.statusCode ?? 0, text: body.toString() });
    request.socket.destroy();
    for (const look of onLost) look();
  }

  const proxy = createServer((request, response) => {
    // The server has gone: cut this side of the line too.
    pass(request, response).catch(() => request.socket.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    httpUrl: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    lost,
    whenLost: (count) =>
      new Promise((resolve) => {
        const look = () => lost.length >= count && resolve();
        onLost.add(look);
        look();
      }),
    async [Symbol.asyncDispose]() {
      proxy.close();
      proxy.closeAllConnections();
    },
  };
}

/** The server's answer, whole. A caller that leaves leaves the server too. */
async function forward(
  { httpUrl }: Pick<Address, "httpUrl">,
  request: IncomingMessage,
  response: ServerResponse,
) {
  const { method, url, headers } = request;
  const onward = open(new URL(url ?? "/", httpUrl), { method, headers, agent: false });
  response.once("close", () => onward.destroy());
  request.pipe(onward);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    onward.once("response", resolve).once("error", reject);
  });
  return { answer, body: await buffer(answer) };
}
