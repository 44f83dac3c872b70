import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { invalid } from "../../domain/errors.ts";
import type { Client, ClientStore } from "../../storage/port.ts";
import { isAgentId, isSubject } from "./identity.ts";
import { repeat } from "./repeat.ts";

export type StoredClient = Client & { readonly secretHash: string };

/** The clients of the token endpoint, in memory. */
export interface ClientRegistry extends Disposable {
  has(id: string): boolean;
  /** The client whose secret it is. An unknown id costs as much as a wrong secret. */
  verifySecret(id: string, secret: string): Client | null;
  /** Reads the clients at once, for who has changed them through the same store. */
  refresh(): Promise<void>;
}

export interface ClientRegistryOptions {
  /** How often to look for another process's change. Default 500. */
  readonly pollMs?: number;
  /** Told of a look that failed; the clients last read stay. */
  readonly onFailure?: (error: unknown) => void;
}

/** For secret scanners. */
const secretPrefix = "sfs_";
const nameCharsMax = 200;

/** Reads the clients, and again whenever another process has written to the store. */
export async function createClientRegistry(
  store: ClientStore,
  { pollMs = 500, onFailure }: ClientRegistryOptions = {},
): Promise<ClientRegistry> {
  let clients: ReadonlyMap<string, StoredClient> = new Map();
  let seen = Number.NaN;
  // Our own writes are no foreign changes: who made one asks for a look.
  let asked = 0;
  let answered = 0;

  async function read(): Promise<void> {
    // Asked before the rows are read: a write in between is found by the next look.
    const changes = store.foreignChanges();
    clients = new Map((await store.listClients()).map((client) => [client.id, client]));
    seen = changes;
  }
  async function look(): Promise<void> {
    const upTo = asked;
    if (upTo === answered && store.foreignChanges() === seen) return;
    await read();
    answered = upTo;
  }
  await read();
  const polling = repeat({ everyMs: pollMs, work: look, onFailure });
  const nobody = hashOf(randomBytes(32).toString("base64url"));

  return {
    has: (id) => clients.has(id),
    verifySecret(id, secret) {
      const client = clients.get(id);
      const isRight = isEqual(hashOf(secret), client?.secretHash ?? nobody);
      return client !== undefined && isRight ? client : null;
    },
    refresh() {
      asked += 1;
      return polling.now();
    },
    [Symbol.dispose]: () => polling[Symbol.dispose](),
  };
}

export interface ClientDraft {
  readonly name: string;
  readonly owner: string;
  /** Binds every token of the client; empty: not bound. */
  readonly agentId: string;
  /** The `scope` claim of its tokens; empty: all groups. */
  readonly scope: string;
  readonly nowUs: number;
}

/** A new client and its secret, which is kept nowhere. Throws VALIDATION_ERROR. */
export function newClient({ name, owner, agentId, scope, nowUs }: ClientDraft): {
  readonly client: StoredClient;
  readonly secret: string;
} {
  if (name === "" || name.length > nameCharsMax || name.includes("\0") || !name.isWellFormed()) {
    throw invalid("name", `must be 1 to ${nameCharsMax} characters, without NUL`);
  }
  if (!isSubject(owner)) throw invalid("sub", "must be 1 to 256 characters, without NUL");
  if (agentId !== "" && !isAgentId(agentId)) {
    throw invalid("agent_id", "must be 1 to 128 of A-Z a-z 0-9 . _ : - and not `register`");
  }
  const secret = secretPrefix + randomBytes(32).toString("base64url");
  const id = `cl_${randomBytes(16).toString("base64url")}`;
  const secretHash = hashOf(secret);
  return { client: { id, name, owner, agentId, scope, createdUs: nowUs, secretHash }, secret };
}

/** The secret is 256 random bits and no password: it needs no salt and no slow hash. */
function hashOf(secret: string): string {
  return hash("sha256", secret, "base64url");
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
