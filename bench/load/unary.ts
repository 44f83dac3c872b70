import { VoidRound } from "./closed-loop.ts";
import type { GrpcConnection } from "./grpc-connection.ts";

/** One unary call; resolves with the encoded answer. Rejects with VoidRound when there is none. */
export function unary(connection: GrpcConnection, block: Buffer, message: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let answer: Buffer | undefined;
    connection.call(block, message, {
      message: (bytes) => {
        answer = bytes;
      },
      end: (isWhole) => {
        if (isWhole && answer !== undefined) resolve(answer);
        else reject(new VoidRound("a call has failed"));
      },
    });
  });
}
