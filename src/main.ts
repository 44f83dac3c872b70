#!/usr/bin/env node
/** Below it, `using` is no syntax and there is no AsyncDisposableStack. */
const oldestMajor = 24;

const [major = 0] = process.versions.node.split(".").map(Number);
if (major < oldestMajor) {
  process.stderr.write(
    `sealflow: Node ${process.versions.node} is too old. Use Node ${oldestMajor} or later.\n`,
  );
  process.exitCode = 1;
} else {
  // Not before the check: what it imports must not be loaded by an older Node.
  const { runCommandLine } = await import("./cli/run.ts");
  process.exitCode = await runCommandLine(process.argv.slice(2));
}
