import { hasSigningKey, rotateSigningKeys } from "../calls/auth/signing-keys.ts";
import { defineCommand } from "./command.ts";
import { dataOptions } from "./data-options.ts";
import { CommandError, exitCodes } from "./exit.ts";

export const keysRotate = defineCommand({
  options: {
    dropOld: {
      kind: "flag",
      argumentOnly: true,
      help: "refuse the tokens of the old keys from now on, e.g. after a leak",
    },
    ...dataOptions,
  },
  notes: [
    "A running server signs with the new key within a second. Without --drop-old, tokens of the " +
      "old keys are accepted until they expire.",
  ],
  async run({ values: { dataDir, dropOld } }) {
    // A mistyped directory must not look like a rotation.
    if (!(await hasSigningKey(dataDir))) {
      throw new CommandError(`there is no signing key in ${dataDir}. Give its --data-dir`);
    }
    const { active } = await rotateSigningKeys(dataDir, { dropOld, nowMs: Date.now() });
    const old = dropOld
      ? "Tokens of the old keys are refused."
      : "Tokens of the old keys are accepted until they expire.";
    process.stdout.write(`The signing key is now ${active.kid}. ${old}\n`);
    return exitCodes.done;
  },
});
