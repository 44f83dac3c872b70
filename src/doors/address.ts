import type { IncomingHttpHeaders } from "node:http";
import { BlockList, isIP } from "node:net";

/** What tells who sent a request. */
interface Sent {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

/** Whose address a request comes from. */
export type AddressOf = (request: Sent) => string;

/**
 * The socket's peer; when that is a trusted proxy, the last address of `X-Forwarded-For` that is
 * not one. `proxies`: addresses or CIDR blocks. Throws RangeError for one that is neither.
 */
export function createAddressOf(proxies: readonly string[]): AddressOf {
  const trusted = new BlockList();
  for (const proxy of proxies) trust(trusted, proxy);
  const isTrusted = (address: string) => {
    const family = isIP(address);
    return family !== 0 && trusted.check(address, family === 4 ? "ipv4" : "ipv6");
  };
  return (request) => {
    const peer = plain(request.socket.remoteAddress ?? "");
    if (proxies.length === 0 || !isTrusted(peer)) return peer;
    const forwarded = [request.headers["x-forwarded-for"] ?? []].flat().join(",");
    const hops = forwarded.split(",").map((hop) => plain(hop.trim()));
    return hops.findLast((hop) => isIP(hop) !== 0 && !isTrusted(hop)) ?? peer;
  };
}

function trust(list: BlockList, proxy: string): void {
  const [address = "", bits] = proxy.split("/");
  const family = isIP(address);
  if (family === 0) throw new RangeError(`${proxy} is no address and no CIDR block`);
  const type = family === 4 ? "ipv4" : "ipv6";
  if (bits === undefined) list.addAddress(address, type);
  else list.addSubnet(address, Number(bits), type);
}

/** An IPv4 address that an IPv6 socket shows is that IPv4 address. */
function plain(address: string): string {
  return address.startsWith("::ffff:") && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}
