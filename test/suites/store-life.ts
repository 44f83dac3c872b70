import { describe, expect, test } from "vitest";
import { makeWorkflow } from "./drafts.ts";
import type { OpenedStore } from "./open-store.ts";
import { refusalOf } from "./refusal.ts";

/** The promises of Store itself, for any store. */
export function storeLifeSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: the store`, () => {
    test("the epoch names this history of the store", async () => {
      await using first = await open();
      await using second = await open();
      expect(first.store.epoch).toMatch(/^[0-9a-f-]{36}$/);
      expect(second.store.epoch).not.toBe(first.store.epoch);
    });

    test("a fingerprint tells equal content", async () => {
      await using opened = await open();
      const { store } = opened;
      expect(store.fingerprint("content")).toBe(store.fingerprint("content"));
      expect(store.fingerprint("content")).not.toBe(store.fingerprint("content."));
      expect(store.fingerprint("content")).not.toContain("content");
    });

    test("a closed store is not writable, and every call throws UNAVAILABLE", async () => {
      await using opened = await open();
      const { store } = opened;
      expect(store.isWritable()).toBe(true);
      await store[Symbol.asyncDispose]();
      expect(store.isWritable()).toBe(false);
      expect(await refusalOf(makeWorkflow(store, "alice"))).toBe("UNAVAILABLE");
      expect(await refusalOf(store.workflows.getWorkflow("alice", "w1"))).toBe("UNAVAILABLE");
    });
  });
}
