import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/** The version of this program. */
export function version(): string {
  const { version } = JSON.parse(readFileSync(join(packageDir(), "package.json"), "utf8"));
  return String(version);
}

/**
 * What to type before a command's name, as this program was started: installed, through npx,
 * through npm in a checkout, or a checkout's file from elsewhere.
 */
export function programName(): string {
  // Node runs TypeScript as it is only outside node_modules: the source means a checkout.
  const script = process.env.npm_lifecycle_event;
  if (!import.meta.filename.endsWith(".ts")) return script === "npx" ? "npx sealflow" : "sealflow";
  const root = packageDir();
  const isInside = `${process.cwd()}${sep}`.startsWith(`${root}${sep}`);
  if (isInside || script !== undefined) return "npm run -s sealflow --";
  return `node ${relative(process.cwd(), join(root, "src", "main.ts"))}`;
}

/** The nearest directory above that holds a package.json. */
function packageDir(): string {
  let dir = import.meta.dirname;
  while (!existsSync(join(dir, "package.json")) && dir !== dirname(dir)) dir = dirname(dir);
  return dir;
}
