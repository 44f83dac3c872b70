/**
 * Where the server's HTTP port is, without a slash at the end. The REST base address, which ends in
 * `/api/v1`, means the same server.
 * @throws TypeError when it is no http or https address
 */
export function serverAddress(server: string): string {
  const { protocol } = new URL(server);
  if (protocol !== "http:" && protocol !== "https:") {
    throw new TypeError(`Not an http or https address: ${server}`);
  }
  return server.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
}
