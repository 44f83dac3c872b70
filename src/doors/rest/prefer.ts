/**
 * The wait that a `Prefer` header asks for (RFC 7240 sections 4.1 and 4.3); undefined: none. Both
 * together mean to answer once the wait is over, so `respond-async` counts only when it is alone.
 */
export function preferredWait(
  prefer: string | undefined,
): { readonly seconds: bigint; readonly nanos: number } | undefined {
  if (prefer === undefined) return undefined;
  const preferences = prefer.split(",").map((part) => part.trim().toLowerCase());
  const wait = preferences
    .map((part) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(part)?.[1])
    .find(Boolean);
  if (wait !== undefined) return { seconds: BigInt(wait), nanos: 0 };
  return preferences.includes("respond-async") ? { seconds: 0n, nanos: 0 } : undefined;
}
