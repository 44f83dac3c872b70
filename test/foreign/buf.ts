import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const bufPath = join(root, "node_modules/.bin/buf");

/** Writes the contract as a descriptor set, which programs of any language read, and tells where. */
export async function writeDescriptors(folder: string): Promise<string> {
  const path = join(folder, "descriptors.binpb");
  const options = ["build", "-o", path, "--as-file-descriptor-set"];
  await promisify(execFile)(bufPath, options, { cwd: root });
  return path;
}
