import { GrpcConnection } from "./grpc-connection.ts";
import type { HeaderField } from "./hpack.ts";
import { openSubscriber } from "./subscriber.ts";

// A process of subscribers, so that what they take is not taken from whoever is measured. It is told
// whom to hear by the first message of its parent, says when all of them are up to date, and then,
// for each change, when the last of them had it.

/** The first message of the parent. */
export interface Seats {
  readonly port: number;
  readonly fields: readonly HeaderField[];
  readonly count: number;
  readonly connections: number;
}

/** What it says: first "ready", then for each change the time by the machine's monotonic clock. */
export type Heard = "ready" | { readonly atNs: string };

process.once("message", (seats: Seats) => {
  void sit(seats);
});

async function sit({ port, fields, count, connections }: Seats): Promise<void> {
  const open: GrpcConnection[] = [];
  for (let i = 0; i < connections; i += 1) open.push(await GrpcConnection.open(port, fields));
  let heard = 0;
  const changed = () => {
    heard += 1;
    if (heard % count === 0) say({ atNs: String(process.hrtime.bigint()) });
  };
  const subscribers = Array.from({ length: count }, (_, i) =>
    openSubscriber(open[i % connections] as GrpcConnection, { changed }),
  );
  await Promise.all(subscribers.map(({ upToDate }) => upToDate));
  say("ready");
}

function say(heard: Heard): void {
  process.send?.(heard);
}
