import { defineConfig } from "drizzle-kit";

/** `npx drizzle-kit generate` writes the migrations of the SQLite schema; needs no database. */
export default defineConfig({
  dialect: "sqlite",
  schema: "./src/storage/sqlite/schema.ts",
  out: "./src/storage/sqlite/migrations",
});
