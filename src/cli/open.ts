import { text } from "node:stream/consumers";
import { unseal } from "../client/crypto.ts";
import { defineCommand } from "./command.ts";
import { exitCodes } from "./exit.ts";
import { bindingOf, keyOf, sealingOptions } from "./sealing-options.ts";

export const openCommand = defineCommand({
  options: sealingOptions,
  notes: [
    "Takes the compact JWE that seal prints. A value of JSON is printed as its text, bytes as " +
      "they are.",
    "The state of a record opens only with its --type, --id and --version, and --deleted for a " +
      "deletion: so a server cannot pass one off as another.",
  ],
  async run({ values }) {
    const [binding, key] = [bindingOf(values), keyOf(values)];
    const opened = await unseal((await text(process.stdin)).trim(), key, binding);
    process.stdout.write(opened instanceof Uint8Array ? opened : `${JSON.stringify(opened)}\n`);
    return exitCodes.done;
  },
});
