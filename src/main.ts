#!/usr/bin/env node
/** Below it, better-sqlite3 ends the process without a word. */
const oldest = [22, 18] as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
  process.stderr.write(
    `sealflow: Node ${process.versions.node} is too old. Use Node ${oldest.join(".")} or later.\n`,
  );
  process.exitCode = 1;
} else {
  // Not before the check: what it imports must not be loaded by an older Node.
  const { runCommandLine } = await import("./cli/run.ts");
  process.exitCode = await runCommandLine(process.argv.slice(2));
}
