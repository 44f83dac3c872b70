import { describe, expect, test } from "vitest";
import type { Client } from "../../src/storage/port.ts";
import type { OpenedStore } from "./open-store.ts";
import { refusedFieldsOf } from "./refusal.ts";

/** The promises of ClientStore, for any store. */
export function clientStoreSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: clients`, () => {
    test("addClient, listClients and removeClient", async () => {
      await using opened = await open();
      const { clients } = opened.store;
      await clients.addClient(client({ id: "c2", name: "phone" }));
      await clients.addClient(client({ id: "c1", name: "laptop" }));
      expect(await clients.listClients()).toStrictEqual([
        client({ id: "c1", name: "laptop" }),
        client({ id: "c2", name: "phone" }),
      ]);
      expect(await clients.removeClient("laptop")).toBe(true);
      expect(await clients.removeClient("c2")).toBe(true);
      expect(await clients.listClients()).toStrictEqual([]);
    });

    test("removeClient: true when there was one of that name or id", async () => {
      await using opened = await open();
      expect(await opened.store.clients.removeClient("laptop")).toBe(false);
    });

    test("throws VALIDATION_ERROR for a name that is taken", async () => {
      await using opened = await open();
      const { clients } = opened.store;
      await clients.addClient(client({ id: "c1", name: "laptop" }));
      const second = clients.addClient(client({ id: "c2", name: "laptop" }));
      expect(await refusedFieldsOf(second)).toStrictEqual(["name"]);
      expect(await clients.listClients()).toHaveLength(1);
    });
  });
}

function client(given: Pick<Client, "id" | "name">): Client & { readonly secretHash: string } {
  return {
    ...given,
    owner: "alice",
    agentId: "agent-1",
    scope: "sealflow:agents sealflow:tasks",
    secretHash: "hash",
    createdUs: 1_750_000_000_000_000,
  };
}
