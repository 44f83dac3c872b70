import type { Task } from "../../gen/sealflow/v1/task_pb.ts";
import { isSealed, type SealingKey, seal, unseal } from "./crypto.ts";

/** What a task carries, opened as far as the agent's key does; and how its answers are written. */
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
 * Opens what is a JWE that the agent's own key opens, and hands on all else as it came, the
 * workflow's key included: the server knows that one, so it hides nothing from the server.
 */
export async function openTask(task: Task, ownKey: SealingKey | undefined): Promise<TaskEnvelope> {
  const input = await open(parse(task.input === "" ? "{}" : task.input), ownKey);
  const payload = await open(task.encryptedData, ownKey);
  const progress = await open(task.progress === "" ? undefined : parse(task.progress), ownKey);
  const sealingKey = [input, payload, progress].some((each) => each.isOpened) ? ownKey : undefined;
  return {
    input: input.value,
    payload: payload.isOpened ? payload.value : undefined,
    // Progress is sealed as the text that it is, which may be that of a value of JSON.
    progress: isOpenedText(progress) ? parse(progress.value) : progress.value,
    isSealed: sealingKey !== undefined,
    outputText: (output) => outputText(output === undefined ? {} : output, sealingKey),
    progressText: async (text) => (sealingKey === undefined ? text : seal(text, sealingKey)),
  };
}

interface Opened {
  readonly value: unknown;
  /** False when the value is as it came. */
  readonly isOpened: boolean;
}

async function open(value: unknown, key: SealingKey | undefined): Promise<Opened> {
  if (key === undefined || typeof value !== "string" || !isSealed(value)) {
    return { value, isOpened: false };
  }
  try {
    return { value: await unseal(value, key), isOpened: true };
  } catch {
    // Not for this key: the handler gets it as it is.
    return { value, isOpened: false };
  }
}

function isOpenedText(opened: Opened): opened is Opened & { readonly value: string } {
  return opened.isOpened && typeof opened.value === "string";
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
