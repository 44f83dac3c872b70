import { describe } from "vitest";
import { feedChangeSuite } from "./feed-changes.ts";
import type { OpenedStore } from "./open-store.ts";
import { feedSuite } from "./record-feed.ts";
import { filterSuite } from "./record-filters.ts";
import { historySuite } from "./record-history.ts";
import { mutationSuite } from "./record-mutations.ts";
import { pushSuite } from "./record-push.ts";
import { pushModeSuite } from "./record-push-modes.ts";

/** The promises of RecordStore, for any store. */
export function recordStoreSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: records`, () => {
    describe("pushRecords", () => {
      pushSuite(open);
      describe("a known mutation id", () => mutationSuite(open));
      pushModeSuite(open);
    });
    describe("readFeed", () => {
      feedSuite(open);
      describe("filters", () => filterSuite(open));
    });
    describe("readFeed with kinds", () => feedChangeSuite(open));
    describe("any history", () => historySuite(open));
  });
}
