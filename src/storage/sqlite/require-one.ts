/**
 * Demands that a statement changed the one row that this same write has read: anything else is a
 * bug, and undoes the write.
 */
export function requireOne({ changes }: { readonly changes: number }): void {
  if (changes !== 1) throw new Error(`a row was not as it was read: ${changes} changed`);
}
