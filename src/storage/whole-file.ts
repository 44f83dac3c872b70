import { closeSync, fsyncSync, linkSync, openSync } from "node:fs";

/**
 * Gives a finished file its name, which is never taken from another file: false when there is one.
 * The file keeps its old name too.
 */
export function placeFile(aside: string, path: string): boolean {
  try {
    linkSync(aside, path);
    return true;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return false;
    throw cause;
  }
}

/** Makes a file's content, or a directory's names, survive a loss of power. */
export function syncPath(path: string): void {
  if (process.platform === "win32") return;
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
