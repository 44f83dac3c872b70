/**
 * Precedence of record versions by Semantic Versioning 2.0.0 section 11, a little wider: a leading
 * `v`, one to three numbers of any length, missing ones 0. Build metadata does not count.
 */
export const versionPattern =
  /^v?(\d+(?:\.\d+){0,2})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;

interface Version {
  readonly numbers: readonly string[];
  /** Empty for a release. */
  readonly preRelease: readonly string[];
}

/** Negative when `a` comes before `b`, 0 when they have the same precedence. */
export function compareVersions(a: string, b: string): number {
  const left = parse(a);
  const right = parse(b);
  for (let i = 0; i < 3; i += 1) {
    const order = compareNumbers(left.numbers[i] ?? "0", right.numbers[i] ?? "0");
    if (order !== 0) return order;
  }
  return comparePreReleases(left.preRelease, right.preRelease);
}

function parse(text: string): Version {
  const [, numbers, preRelease] = versionPattern.exec(text) ?? [];
  if (numbers === undefined) throw new RangeError(`not a version: ${text}`);
  return { numbers: numbers.split("."), preRelease: preRelease?.split(".") ?? [] };
}

function comparePreReleases(a: readonly string[], b: readonly string[]): number {
  // A release comes after its pre-releases.
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  for (const [i, left] of a.entries()) {
    const right = b[i];
    if (right === undefined) return 1;
    const order = compareIdentifiers(left, right);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareIdentifiers(a: string, b: string): number {
  const aIsNumber = /^\d+$/.test(a);
  const bIsNumber = /^\d+$/.test(b);
  if (aIsNumber && bIsNumber) return compareNumbers(a, b);
  if (aIsNumber !== bIsNumber) return aIsNumber ? -1 : 1;
  return compareText(a, b);
}

/** Whole numbers of any length, leading zeros allowed. */
function compareNumbers(a: string, b: string): number {
  const left = a.replace(/^0+(?=\d)/, "");
  const right = b.replace(/^0+(?=\d)/, "");
  return left.length === right.length ? compareText(left, right) : left.length - right.length;
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
