import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** A web site of its own origin with one page, which runs a script of this folder. */
export interface WebSite extends AsyncDisposable {
  readonly origin: string;
  /** What the page is told: where the server is, and its token. */
  give(given: {
    readonly server: string;
    readonly token: string;
    readonly [more: string]: unknown;
  }): void;
  /** The next thing that the page reports. */
  nextReport(): Promise<unknown>;
}

export async function openWebSite(page = "page.ts"): Promise<WebSite> {
  const script = await bundle(page);
  const reports = new ReportQueue();
  let given = {};
  const files: Record<string, () => [type: string, content: string]> = {
    "/": () => ["text/html", '<!doctype html><script type="module" src="/page.js"></script>'],
    "/page.js": () => ["text/javascript", script],
    "/given.json": () => ["application/json", JSON.stringify(given)],
  };
  const server = createServer(async (request, response) => {
    const file = files[request.url ?? ""];
    if (request.method === "POST") reports.add(await jsonOf(request));
    if (file === undefined) {
      response.writeHead(request.method === "POST" ? 204 : 404).end();
      return;
    }
    const [type, content] = file();
    response.setHeader("content-type", type).end(content);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    give(value) {
      given = value;
    },
    nextReport: () => reports.next(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}

/** The client package as an application would bundle it. */
async function bundle(page: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(page, import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "silent",
  });
  return outputFiles[0]?.text ?? "";
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  return JSON.parse(await text(request));
}

class ReportQueue {
  readonly #reports: unknown[] = [];
  #wake = () => {};

  add(report: unknown): void {
    this.#reports.push(report);
    this.#wake();
  }

  async next(): Promise<unknown> {
    while (this.#reports.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#reports.shift();
  }
}
