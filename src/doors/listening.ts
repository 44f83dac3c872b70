import type { AddressInfo, Server } from "node:net";

/** Where a server listens. */
export interface Listening {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** The setting that changes the port, e.g. `http-port`. */
  readonly flag: string;
  /** Told of failures once it listens. */
  onFailure(cause: unknown): void;
}

/** How long what runs may take to finish once the server stops. */
const stopMs = 10_000;

/** Throws PortInUseError, which names the flag that changes the port. */
export async function listen(
  server: Server,
  { host, port, flag, onFailure }: Listening,
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException) => {
      reject(cause.code === "EADDRINUSE" ? new PortInUseError(port, flag) : cause);
    };
    server.once("error", onError);
    server.listen(port, host, () => {
      server.off("error", onError).on("error", onFailure);
      resolve();
    });
  });
  return (server.address() as AddressInfo).port;
}

/** Another process listens on the port. */
export class PortInUseError extends Error {
  readonly port: number;
  /** The setting that changes it, e.g. `http-port`. */
  readonly flag: string;

  constructor(port: number, flag: string) {
    super(`Port ${port} is in use. Choose another with --${flag}, or 0 for any free one.`);
    this.name = "PortInUseError";
    this.port = port;
    this.flag = flag;
  }
}

/** Resolves when every connection has ended, or the time is over. */
export async function finish(servers: readonly Server[]): Promise<void> {
  const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
  const { promise: timeOver, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, stopMs);
  await Promise.race([Promise.all(closed), timeOver]);
  clearTimeout(timer);
}
