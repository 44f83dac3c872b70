/** As the server orders versions: see `nextVersion` and `compareVersions`. */
const versionPattern =
  /^(v?)(\d+(?:\.\d+){0,2})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;

interface Version {
  readonly prefix: string;
  readonly numbers: readonly string[];
  /** Empty for a release. */
  readonly preRelease: readonly string[];
}

/** Whether the server would read this as a version. */
export function isVersion(text: string): boolean {
  return text.length <= 64 && versionPattern.test(text);
}

/**
 * Negative when `a` comes before `b`, 0 when they have the same precedence: that of Semantic
 * Versioning 2.0.0 section 11, with one to three numbers of any length, missing ones 0.
 * @throws RangeError for what is no version
 */
export function compareVersions(a: string, b: string): number {
  const left = parse(a);
  const right = parse(b);
  for (let i = 0; i < 3; i += 1) {
    const order = compareNumbers(left.numbers[i] ?? "0", right.numbers[i] ?? "0");
    if (order !== 0) return order;
  }
  return comparePreReleases(left.preRelease, right.preRelease);
}

/** The next greater version: the release of a pre-release, else one more in the last number. */
export function nextVersion(version: string | undefined): string {
  if (version === undefined) return "1";
  const { prefix, numbers, preRelease } = parse(version);
  if (preRelease.length > 0) return prefix + numbers.join(".");
  const last = BigInt(numbers.at(-1) ?? "0") + 1n;
  return prefix + [...numbers.slice(0, -1), last].join(".");
}

function parse(text: string): Version {
  const [, prefix = "", numbers, preRelease] = versionPattern.exec(text) ?? [];
  if (numbers === undefined) throw new RangeError(`Not a version: ${text}`);
  return { prefix, numbers: numbers.split("."), preRelease: preRelease?.split(".") ?? [] };
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

function compareNumbers(a: string, b: string): number {
  const left = a.replace(/^0+(?=\d)/, "");
  const right = b.replace(/^0+(?=\d)/, "");
  return left.length === right.length ? compareText(left, right) : left.length - right.length;
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
