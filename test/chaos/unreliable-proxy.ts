import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { Random } from "./random.ts";

/** What becomes of a call on its way. */
const fates = {
  pass: 80,
  /** It never arrives. */
  dropCall: 3,
  /** It is done, and nobody learns of it. */
  dropAnswer: 6,
  /** It arrives twice. */
  duplicate: 4,
  /** It arrives late. */
  delayCall: 4,
  /** It is done at once and answered late. */
  delayAnswer: 3,
};

/** Stands between the callers and the server, and loses, doubles and delays what passes. */
export class UnreliableProxy {
  readonly #server = createServer((asked, answer) => {
    this.#handle(asked, answer).catch(() => answer.destroy());
  });
  readonly #target: () => string;
  readonly #random: Random;
  readonly #delayMsMax: number;
  /** How often each fate came. */
  readonly counts: Record<keyof typeof fates, number> = {
    ...{ pass: 0, dropCall: 0, dropAnswer: 0, duplicate: 0, delayCall: 0, delayAnswer: 0 },
  };
  isHonest = false;

  constructor(options: {
    readonly target: () => string;
    readonly random: Random;
    readonly delayMsMax: number;
  }) {
    this.#target = options.target;
    this.#random = options.random;
    this.#delayMsMax = options.delayMsMax;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #handle(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const body = await buffer(asked);
    const fate = this.isHonest ? "pass" : this.#random.choose(fates);
    this.counts[fate] += 1;
    if (fate === "dropCall") return void answer.destroy();
    if (fate === "delayCall") await this.#delay();
    // Whatever became of the first: the second is the one that is answered.
    if (fate === "duplicate") void this.#forward(asked, body).catch(() => {});
    const got = await this.#forward(asked, body);
    if (fate === "dropAnswer") return void answer.destroy();
    if (fate === "delayAnswer") await this.#delay();
    answer.writeHead(got.status, got.headers).end(got.body);
  }

  async #forward(asked: IncomingMessage, body: Buffer) {
    const sent = request(new URL(asked.url ?? "/", this.#target()), {
      method: asked.method ?? "GET",
      headers: { ...asked.headers, connection: "close" },
    });
    sent.end(body);
    const [got] = (await once(sent, "response")) as [IncomingMessage];
    const { "transfer-encoding": _, connection, ...headers } = got.headers;
    return { status: got.statusCode ?? 500, headers, body: await buffer(got) };
  }

  #delay(): Promise<void> {
    const ms = this.#random.between(0, this.#delayMsMax);
    return new Promise((resolve) => setTimeout(resolve, ms));
  }
}
