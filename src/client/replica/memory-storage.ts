import { storageTaken } from "./replica-error.ts";
import type { ReplicaStorage } from "./replica-storage.ts";
import { StoredFold } from "./stored-fold.ts";

/** Keeps a replica for as long as the program runs. */
export function memoryStorage(): ReplicaStorage {
  const fold = new StoredFold();
  let holder = 0;
  return {
    async open() {
      holder += 1;
      const mine = holder;
      return {
        state: fold.snapshot(),
        async save(change) {
          if (holder !== mine) throw storageTaken("this memory");
          fold.apply(change);
        },
        async close() {},
      };
    },
  };
}
