import { type Reason, ServiceError } from "../../src/domain/errors.ts";

/** The reason for which a call is refused; throws when it is not, or fails otherwise. */
export async function refusalOf(call: Promise<unknown>): Promise<Reason> {
  return (await errorOf(call)).reason;
}

/** The fields that a refused call names. */
export async function refusedFieldsOf(call: Promise<unknown>): Promise<readonly string[]> {
  return ((await errorOf(call)).facts.fields ?? []).map(({ field }) => field);
}

/** What a refused call throws. */
export async function errorOf(call: Promise<unknown>): Promise<ServiceError> {
  const outcome = await call.then(
    () => null,
    (cause: unknown) => cause,
  );
  if (outcome instanceof ServiceError) return outcome;
  throw outcome ?? new Error("the call was not refused");
}
