import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { LaneCall, type LaneParts } from "./lane-call.ts";

/** Serves a stream when it is plain gRPC for an rpc; tells whether it was. */
export type GrpcLane = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => boolean;

/**
 * gRPC over HTTP/2 (PROTOCOL-HTTP2.md of the gRPC project) on the bare streams of node:http2, for
 * what nearly every call is: protobuf that is not compressed, one message there, one or many back.
 * All else (compression, JSON, gRPC-Web, what is no rpc) it leaves to the Connect adapter, several
 * times slower.
 */
export function createGrpcLane(
  parts: LaneParts & { readonly services: readonly DescService[] },
): GrpcLane {
  const methods = methodsOf(parts.services);
  return (stream, headers) => {
    const method = isPlain(headers) ? methods.get(headers[":path"] ?? "") : undefined;
    if (method === undefined) return false;
    const call = new LaneCall(parts, { method, stream, headers });
    const served = method.methodKind === "unary" ? call.unary() : call.stream();
    served.catch((cause: unknown) => call.abandon(cause));
    return true;
  };
}

function methodsOf(services: readonly DescService[]): ReadonlyMap<string, DescMethod> {
  const methods = services.flatMap((service) => service.methods);
  return new Map(
    methods
      .filter(({ methodKind }) => methodKind === "unary" || methodKind === "server_streaming")
      .map((method) => [`/${method.parent.typeName}/${method.name}`, method]),
  );
}

/** A host that needs no second look, with or without its port. */
const authorityPattern = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

function isPlain(headers: IncomingHttpHeaders): boolean {
  const type = headers["content-type"];
  if (type !== "application/grpc" && type !== "application/grpc+proto") return false;
  const encoding = headers["grpc-encoding"];
  return (
    headers[":method"] === "POST" &&
    (encoding === undefined || encoding === "identity") &&
    headers.expect === undefined &&
    authorityPattern.test(headers[":authority"] ?? "")
  );
}
