import { buffer } from "node:stream/consumers";
import { newKey, seal } from "../client/crypto.ts";
import { defineCommand } from "./command.ts";
import { CommandError, exitCodes } from "./exit.ts";
import { bindingOf, keyOf, sealingOptions } from "./sealing-options.ts";

export const sealCommand = defineCommand({
  options: {
    newKey: { kind: "flag", argumentOnly: true, help: "print a new key, and nothing else" },
    ...sealingOptions,
    bytes: {
      kind: "flag",
      argumentOnly: true,
      help: "seal stdin as bytes even when it is JSON",
    },
  },
  notes: [
    "Prints a compact JWE: the encryptedData of a workflow or of a push, or the input of an " +
      "execution. JSON is sealed as the value that it is, everything else byte for byte.",
    "With --type, --id and --version it opens as that state of that record only. Nothing on " +
      "stdin is null, which does for a deletion.",
  ],
  async run({ values }) {
    if (values.newKey) {
      process.stdout.write(`${newKey()}\n`);
      return exitCodes.done;
    }
    const [binding, key] = [bindingOf(values), keyOf(values)];
    const bytes = await buffer(process.stdin);
    const payload = values.bytes ? bytes : payloadOf(bytes, binding !== undefined);
    process.stdout.write(`${await seal(payload, key, binding)}\n`);
    return exitCodes.done;
  },
});

/** The value of JSON that the bytes are, or else the bytes. */
function payloadOf(bytes: Buffer, isRecord: boolean): unknown {
  if (bytes.byteLength === 0 && isRecord) return null;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    JSON.parse(text);
  } catch {
    return bytes;
  }
  return JSON.parse(text, refuseLossy);
}

/** What JavaScript would change must not be changed in silence. */
function refuseLossy(_name: string, value: unknown): unknown {
  if (typeof value !== "number") return value;
  if (Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
  throw new CommandError("a number in the JSON is too large to keep exactly. Use --bytes");
}
