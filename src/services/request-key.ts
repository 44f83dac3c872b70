import { invalid } from "../domain/errors.ts";
import type { RequestKey, Store } from "../storage/port.ts";
import type { Call } from "./call.ts";

const idCharactersMax = 128;

/**
 * The key that makes a call repeatable: `request_id`, or the metadata `idempotency-key`. `content`
 * is all that must be the same when it is used again.
 */
export function requestKey(
  store: Store,
  call: Call,
  { requestId, content }: { readonly requestId: string; readonly content: readonly unknown[] },
): { readonly request?: RequestKey } {
  const id = requestId === "" ? call.idempotencyKey : requestId;
  if (id === "") return {};
  if (call.idempotencyKey !== "" && call.idempotencyKey !== id) {
    throw invalid("request_id", "must not differ from the idempotency-key");
  }
  if ([...id].length > idCharactersMax) {
    throw invalid("request_id", `must be at most ${idCharactersMax} characters`);
  }
  return { request: { id, fingerprint: store.fingerprint(JSON.stringify(content)) } };
}
