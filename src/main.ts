#!/usr/bin/env node
/** Below it, TypeScript does not run as it is, and the database driver is not safe to load. */
const oldest = { major: 22, minor: 18 };

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < oldest.major || (major === oldest.major && minor < oldest.minor)) {
  process.stderr.write(
    `sealflow: Node ${process.versions.node} is too old. Use Node ${oldest.major}.${oldest.minor} or later.\n`,
  );
  process.exitCode = 1;
} else {
  // Not before the check: what it imports must not be loaded by an older Node.
  const { runCommandLine } = await import("./cli/run.ts");
  process.exitCode = await runCommandLine(process.argv.slice(2));
}
