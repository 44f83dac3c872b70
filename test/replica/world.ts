import { connect, type Sealflow } from "../../src/client/client.ts";
import { startTestServer, type TestServer } from "../doors/server.ts";
import { type Device, openDevice } from "./device.ts";

/** A server and the devices of one owner. */
export interface World extends AsyncDisposable {
  readonly server: TestServer;
  device(id: string, options?: DeviceOptions): Promise<Device>;
  /** The service as any other program of the owner calls it. */
  raw(): Promise<Sealflow["sync"]>;
  /** How often a record was changed there; 0 when there is none. */
  serverRevision(entityId: string): Promise<number>;
}

export type DeviceOptions = Omit<Parameters<typeof openDevice>[0], "server" | "id">;

export async function openWorld(): Promise<World> {
  const server = await startTestServer();
  const devices: Device[] = [];
  const raw = async () => {
    const token = await server.token({ sub: "me" });
    return connect(server.httpUrl, { token, agentId: "raw" }).sync;
  };
  return {
    server,
    async device(id, options = {}) {
      const opened = await openDevice({ server, id, ...options });
      devices.push(opened);
      return opened;
    },
    raw,
    async serverRevision(entityId) {
      const sync = await raw();
      const { records } = await sync.pullState({ since: 0n, includeDeleted: true });
      return Number(records.find((record) => record.entityId === entityId)?.revision ?? 0);
    },
    async [Symbol.asyncDispose]() {
      for (const each of devices) await each[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

export const note = (entityId: string, data: string) => ({ type: "note", entityId, data });
