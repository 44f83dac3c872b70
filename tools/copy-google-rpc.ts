// Copies what our errors are made of from the package google-proto-files, so that buf can read it
// without its registry. Run after every update of the package:  node tools/copy-google-rpc.ts
import { copyFileSync } from "node:fs";

const source = "node_modules/google-proto-files/google/rpc";
const target = "proto/third_party/google/rpc";

for (const name of ["status.proto", "error_details.proto"]) {
  copyFileSync(`${source}/${name}`, `${target}/${name}`);
}
