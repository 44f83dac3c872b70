/** The wait that a `Prefer` header asks for (RFC 7240 sections 4.1 and 4.3); undefined: none. */
export function preferredWait(
  prefer: string | undefined,
): { readonly seconds: bigint; readonly nanos: number } | undefined {
  if (prefer === undefined) return undefined;
  const preferences = prefer.split(",").map((part) => part.trim().toLowerCase());
  const wait = preferences
    .map((part) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(part)?.[1])
    .find(Boolean);
  if (preferences.includes("respond-async")) return { seconds: 0n, nanos: 0 };
  return wait === undefined ? undefined : { seconds: BigInt(wait), nanos: 0 };
}
