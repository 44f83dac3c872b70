import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { onTestFinished } from "vitest";
import { type Authenticate, createAuthenticator } from "../src/calls/auth/authenticate.ts";
import {
  type ClientRegistry,
  createClientRegistry,
  newClient,
  type StoredClient,
} from "../src/calls/auth/clients.ts";
import { type KeyRing, openKeyRing } from "../src/calls/auth/key-ring.ts";
import type { SharedSecret } from "../src/calls/auth/token-issuers.ts";
import { createVerifier, type Verifier } from "../src/calls/auth/verifier.ts";
import { ServiceError } from "../src/domain/errors.ts";
import type { ClientStore } from "../src/storage/port.ts";

export const pollMs = 5;

/** Everything about who a caller is, on a data directory of its own and a clock that stands. */
export interface House extends Disposable {
  readonly dataDir: string;
  readonly clock: { nowMs: number };
  readonly keys: KeyRing;
  readonly store: MemoryClients;
  readonly clients: ClientRegistry;
  readonly verifier: Verifier;
  readonly authenticate: Authenticate;
  readonly nowMs: () => number;
}

export async function openHouse(sharedSecret?: SharedSecret): Promise<House> {
  const dataDir = newDataDir();
  const clock = { nowMs: Date.UTC(2030, 0, 1) };
  const nowMs = () => clock.nowMs;
  const keys = await openKeyRing(dataDir, { nowMs, pollMs });
  const store = memoryClients();
  const clients = await createClientRegistry(store, { pollMs });
  const verifier = createVerifier({ keys, clients, nowMs, sharedSecret });
  const authenticate = createAuthenticator({ verifier });
  const house = { dataDir, clock, keys, store, clients, verifier, authenticate, nowMs };
  return {
    ...house,
    [Symbol.dispose]() {
      for (const part of [verifier, clients, keys]) part[Symbol.dispose]();
    },
  };
}

export function newDataDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "sealflow-auth-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** A token of the built-in issuer with whatever claims and header a test wants. */
export function sign(
  { keys, clock }: House,
  claims: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): Promise<string> {
  const { kid, privateKey } = keys.active();
  const exp = clock.nowMs / 1000 + 60;
  return new SignJWT({ iss: "sealflow", aud: "sealflow", sub: "me", exp, ...claims })
    .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid, ...header })
    .sign(privateKey);
}

/** What a call fails with; a success fails the test. */
export async function failureOf(call: () => unknown): Promise<ServiceError> {
  try {
    await call();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

export interface MemoryClients extends ClientStore {
  /** Adds a client as another process would, and answers it with its secret. */
  plant(draft?: Partial<Parameters<typeof newClient>[0]>): ReturnType<typeof newClient>;
}

/** Stands where the store is: every write counts as another process's. */
export function memoryClients(): MemoryClients {
  const rows = new Map<string, StoredClient>();
  let changes = 0;
  return {
    plant(draft) {
      const whole = { name: "ci", owner: "me", agentId: "", scope: "", nowUs: 1, ...draft };
      const made = newClient(whole);
      rows.set(made.client.id, made.client);
      changes += 1;
      return made;
    },
    async addClient(client) {
      rows.set(client.id, client);
      changes += 1;
    },
    async removeClient(nameOrId) {
      changes += 1;
      return rows.delete(nameOrId);
    },
    listClients: async () => [...rows.values()],
    foreignChanges: () => changes,
  };
}
