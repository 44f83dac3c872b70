/** The known word that is spelled most alike, if at most `distanceMax` letters differ. */
export function nearest(
  word: string,
  known: readonly string[],
  distanceMax: number,
): string | undefined {
  // The distance costs the product of both lengths.
  if (word.length > 100) return undefined;
  const ranked = known
    .map((name) => ({ name, distance: editDistance(word, name) }))
    .sort((a, b) => a.distance - b.distance);
  const [best] = ranked;
  return best !== undefined && best.distance <= distanceMax ? best.name : undefined;
}

/** Levenshtein's: how many letters to change, drop or add. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const change = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(change, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
