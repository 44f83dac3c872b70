import { connect, type Socket } from "node:net";
import type { TestServer } from "./server.ts";

/** What came back over a bare socket. */
export interface RawAnswer {
  readonly status: number;
  /** Everything that was received, interim answers too. */
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers of every shape.
  readonly body: any;
}

/** A bare connection to the HTTP port. */
export interface RawConnection extends Disposable {
  readonly socket: Socket;
  send(data: string | Uint8Array): void;
  /** Resolves with the first final answer once its body is complete, or what came until the end. */
  answer(withinMs?: number): Promise<RawAnswer>;
  /** Resolves when text like this has come. */
  until(pattern: RegExp, withinMs?: number): Promise<string>;
}

export function openRaw(server: TestServer): RawConnection {
  const { hostname, port } = new URL(server.httpUrl);
  const socket = connect(Number(port), hostname);
  let text = "";
  let isOver = false;
  const watchers = new Set<() => void>();
  const wake = () => {
    for (const watcher of watchers) watcher();
  };
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    wake();
  });
  // A server that has answered may reset what it does not want to read.
  socket.on("error", () => {});
  socket.on("close", () => {
    isOver = true;
    wake();
  });
  const when = <T>(find: () => T | undefined, withinMs = 5000): Promise<T> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => settle(() => reject(new Error(`nothing came but: ${text}`))),
        withinMs,
      );
      const settle = (done: () => void) => {
        clearTimeout(timer);
        watchers.delete(look);
        done();
      };
      const look = () => {
        const found = find();
        if (found !== undefined) settle(() => resolve(found));
        else if (isOver) settle(() => reject(new Error(`closed after: ${text}`)));
      };
      watchers.add(look);
      look();
    });
  return {
    socket,
    send: (data) => void socket.write(data),
    answer: (withinMs) => when(() => parse(text, isOver), withinMs),
    until: (pattern, withinMs) => when(() => pattern.exec(text)?.[0], withinMs),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** The head of a request, with the empty line that ends it. */
export function head(line: string, headers: Record<string, string | number>): string {
  const lines = Object.entries({ host: "localhost", ...headers }).map(([k, v]) => `${k}: ${v}`);
  return `${line} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
}

/** Undefined until the final answer is whole. */
function parse(received: string, isOver: boolean): RawAnswer | undefined {
  const text = received.replace(/^(HTTP\/1\.1 1\d\d [^\r]*\r\n\r\n)+/, "");
  const [top, ...rest] = text.split("\r\n\r\n");
  if (top === undefined || rest.length === 0) return undefined;
  const length = Number(/content-length: (\d+)/i.exec(top)?.[1] ?? 0);
  const content = rest.join("\r\n\r\n");
  if (content.length < length && !isOver) return undefined;
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(top)?.[1]),
    text: received,
    body: readJson(content.slice(0, length)),
  };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
