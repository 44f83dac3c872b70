import { SyncService, UpdateKind } from "../../gen/sealflow/v1/sync_pb.ts";
import type { GrpcConnection } from "./grpc-connection.ts";
import type { HeaderField } from "./hpack.ts";
import { blockOf, encoded } from "./rpc.ts";

/** A stream of Subscribe, as its listener sees it. */
export interface Subscriber {
  /** Once it has caught up with the feed. */
  readonly upToDate: Promise<void>;
  /** True once the server has ended it. */
  readonly hasEnded: () => boolean;
}

const { subscribe } = SyncService.method;
const kindTag = 0x08;

/** Subscribes from now on. `changed`: a record was pushed; it is not decoded. */
export function openSubscriber(
  connection: GrpcConnection,
  {
    fields = [],
    changed = () => {},
  }: { readonly fields?: readonly HeaderField[]; readonly changed?: () => void } = {},
): Subscriber {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let hasEnded = false;
  connection.call(blockOf(subscribe, fields), encoded(subscribe.input, {}), {
    message(bytes) {
      const kind = bytes[0] === kindTag ? bytes[1] : UpdateKind.UNSPECIFIED;
      if (kind === UpdateKind.STATE_UPSERTED) changed();
      else if (kind === UpdateKind.UP_TO_DATE) resolve();
    },
    end() {
      hasEnded = true;
      reject(new Error("a stream has ended"));
    },
  });
  return { upToDate: promise, hasEnded: () => hasEnded };
}
