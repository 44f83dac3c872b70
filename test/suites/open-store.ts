import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/domain/clock.ts";
import type { Store } from "../../src/storage/port.ts";
import { openSqliteStore } from "../../src/storage/sqlite/open.ts";

/** A fresh store of its own, gone with its data when disposed of. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
  readonly clock: FakeClock;
}

/** Stands still until it is moved. The two clocks begin at different times: a mix-up shows. */
export interface FakeClock extends Clock {
  /** Time passes: both clocks move on. */
  advance(us: number): void;
  /** Somebody sets the wall clock; `us` may be negative. */
  stepWall(us: number): void;
}

export const second = 1_000_000;
export const minute = 60 * second;
export const day = 24 * 60 * minute;

export function createFakeClock(): FakeClock {
  let wallUs = 1_750_000_000_000_000;
  let steadyUs = wallUs - day;
  return {
    wallUs: () => wallUs,
    steadyUs: () => steadyUs,
    advance(us) {
      wallUs += us;
      steadyUs += us;
    },
    stepWall(us) {
      wallUs += us;
    },
  };
}

export async function openFreshSqliteStore(): Promise<OpenedStore> {
  const folder = await makeFolder();
  const clock = createFakeClock();
  const store = await openSqliteStore({
    path: join(folder.path, "sealflow.db"),
    masterKey: testKey(1),
    clock,
  });
  return {
    store,
    clock,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** A temporary directory. */
export async function makeFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "sealflow-"));
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** A server's key for tests: 32 equal bytes. */
export function testKey(byte: number): Uint8Array {
  return new Uint8Array(32).fill(byte);
}
