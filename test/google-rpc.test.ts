import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test.each(["status.proto", "error_details.proto"])(
  "google/rpc/%s is as tools/copy-google-rpc.ts copies it",
  (name) => {
    const [ours, theirs] = ["proto/third_party", "node_modules/google-proto-files"].map((folder) =>
      readFileSync(`${folder}/google/rpc/${name}`, "utf8"),
    );
    expect(ours).toBe(theirs);
  },
);
