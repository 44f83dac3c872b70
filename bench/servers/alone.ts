import { join } from "node:path";
import { GrpcConnection } from "../load/grpc-connection.ts";
import type { HeaderField } from "../load/hpack.ts";
import type { Bench } from "../scenario.ts";
import { type DataFolder, type Fill, makeData } from "./base-data.ts";
import { grpcPort } from "./callers.ts";
import { startSealflow } from "./sealflow.ts";
import type { Server } from "./server.ts";

/** Sealflow without peers, on data that `fill` has written. `name`: of its folder. */
export async function startAlone(
  bench: Bench,
  { name, fill }: { readonly name: string; readonly fill: Fill },
): Promise<{ readonly server: Server; readonly data: DataFolder }> {
  const data = await makeData(join(bench.folder, name), fill);
  return { data, server: bench.closers.use(await startSealflow(bench, data.path)) };
}

/** Connections that are closed when the scenario ends. */
export async function openConnections(
  { closers }: Bench,
  server: Server,
  { count, fields }: { readonly count: number; readonly fields: readonly HeaderField[] },
): Promise<(caller: number) => GrpcConnection> {
  const open: GrpcConnection[] = [];
  for (let i = 0; i < count; i += 1) {
    const connection = await GrpcConnection.open(grpcPort(server), fields);
    closers.defer(() => connection.close());
    open.push(connection);
  }
  return (caller) => {
    const connection = open[caller % count];
    if (connection === undefined) throw new RangeError("no connections");
    return connection;
  };
}
