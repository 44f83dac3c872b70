import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { GrpcConnection } from "./grpc-connection.ts";
import { type HeaderField, passing } from "./hpack.ts";
import { unary } from "./unary.ts";

/** The header fields of a call of `method`, encoded once. */
export function blockOf(method: DescMethod, fields: readonly HeaderField[] = []): Buffer {
  return passing([[":path", `/${method.parent.typeName}/${method.name}`], ...fields]);
}

export function encoded<M extends DescMessage>(schema: M, message: MessageInitShape<M>): Buffer {
  return Buffer.from(toBinary(schema, create(schema, message)));
}

/** Calls, and decodes the answer. Rejects with VoidRound when there is none. */
export async function callRpc<I extends DescMessage, O extends DescMessage>(
  connection: GrpcConnection,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
): Promise<MessageShape<O>> {
  const message = encoded(method.input, request);
  return fromBinary(method.output, await unary(connection, blockOf(method), message));
}
