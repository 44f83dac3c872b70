import { issueToken } from "../calls/auth/issuer.ts";
import { scopeOfGroups } from "../calls/auth/scope.ts";
import { ensureSigningKey } from "../calls/auth/signing-keys.ts";
import { parseTtl } from "../calls/auth/ttl.ts";
import { defineCommand } from "./command.ts";
import { checkDataDir, dataOptions } from "./data-options.ts";
import { exitCodes } from "./exit.ts";
import { grantOptions } from "./token-options.ts";

export const token = defineCommand({
  options: {
    ...grantOptions,
    ttl: {
      kind: "text",
      placeholder: "TIME",
      default: "1h",
      help: "how long it is accepted, at most 30d",
    },
    ...dataOptions,
  },
  notes: [
    "Prints the token and nothing else. It is signed with the key in the data directory, and is " +
      "valid whether or not the server runs now. Where there is no key yet, one is made: in " +
      "./data, or in a directory that is there.",
  ],
  async run({ values }) {
    const draft = {
      sub: values.sub,
      agentId: values.agent ?? "",
      scope: scopeOfGroups(values.scope ?? ""),
      ttlSeconds: parseTtl(values.ttl),
      nowMs: Date.now(),
    };
    checkDataDir(values.dataDir);
    const { active } = await ensureSigningKey(values.dataDir);
    const { token: text } = await issueToken(active, draft);
    process.stdout.write(`${text}\n`);
    return exitCodes.done;
  },
});
