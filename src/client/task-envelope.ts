import type { Task } from "../../gen/sealflow/v1/task_pb.ts";
import { isKey, isSealed, type SealingKey, seal, unseal } from "./crypto.ts";

/** What a task carries, opened as far as a key is known; and how its answers are written. */
export interface TaskEnvelope {
  readonly input: unknown;
  /** What `encrypted_data` held; undefined when it was not opened. */
  readonly payload: unknown;
  readonly progress: unknown;
  /** Whether anything was opened; then what goes back is sealed too. */
  readonly isSealed: boolean;
  /** JSON text. Rejects for what is no value of JSON. */
  outputText(output: unknown): Promise<string>;
  progressText(progress: string): Promise<string>;
}

/**
 * Opens what is a JWE that the agent's key opens, or else the workflow's if it is one, and hands on
 * all else as it came.
 */
export async function openTask(task: Task, ownKey: SealingKey | undefined): Promise<TaskEnvelope> {
  const keys: SealingKey[] = ownKey === undefined ? [] : [ownKey];
  if (isKey(task.encryptionKey)) keys.push(task.encryptionKey);
  const input = await open(parse(task.input === "" ? "{}" : task.input), keys);
  const payload = await open(task.encryptedData, keys);
  const progress = await open(task.progress === "" ? undefined : parse(task.progress), keys);
  const usedKeys = [input.key, payload.key, progress.key];
  // The agent's own key first: the server knows the workflow's.
  const sealingKey = keys.find((key) => usedKeys.includes(key));
  return {
    input: input.value,
    payload: payload.key === undefined ? undefined : payload.value,
    // Progress is sealed as the text that it is, which may be that of a value of JSON.
    progress: isOpenedText(progress) ? parse(progress.value) : progress.value,
    isSealed: sealingKey !== undefined,
    outputText: (output) => outputText(output === undefined ? {} : output, sealingKey),
    progressText: async (text) => (sealingKey === undefined ? text : seal(text, sealingKey)),
  };
}

interface Opened {
  readonly value: unknown;
  /** The key that opened it; undefined when the value is as it came. */
  readonly key: SealingKey | undefined;
}

async function open(value: unknown, keys: readonly SealingKey[]): Promise<Opened> {
  if (typeof value === "string" && isSealed(value)) {
    for (const key of keys) {
      try {
        return { value: await unseal(value, key), key };
      } catch {
        // Not for this key: the next one may open it, and else the handler gets it as it is.
      }
    }
  }
  return { value, key: undefined };
}

function isOpenedText(opened: Opened): opened is Opened & { readonly value: string } {
  return opened.key !== undefined && typeof opened.value === "string";
}

/** A value of JSON when the text is one, else the text. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function outputText(output: unknown, key: SealingKey | undefined): Promise<string> {
  if (key !== undefined) return JSON.stringify(await seal(output, key));
  const text: string | undefined = JSON.stringify(output);
  if (text === undefined) throw new TypeError("The output is not a value of JSON");
  return text;
}
