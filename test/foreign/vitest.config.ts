import { defineConfig } from "vitest/config";

/** Programs that are not ours call the real server. They come from Debian's packages too. */
export default defineConfig({
  test: {
    include: ["test/foreign/**/*.test.ts"],
    globalSetup: "test/foreign/debian.ts",
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
