import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareVersions, versionPattern } from "../src/domain/version.ts";

const settings = { seed: 20_261_121, numRuns: 500 };

/** Close together, so that equal ones and equal beginnings are common. */
const version = fc
  .record({
    numbers: fc.array(fc.constantFrom("0", "1", "9", "10", "99999999999999999999"), {
      minLength: 1,
      maxLength: 3,
    }),
    preRelease: fc.array(fc.constantFrom("0", "1", "11", "a", "A", "a1", "1a", "x"), {
      maxLength: 3,
    }),
  })
  .map(({ numbers, preRelease }) =>
    [numbers.join("."), ...(preRelease.length > 0 ? [preRelease.join(".")] : [])].join("-"),
  );

describe("version precedence", () => {
  // Each line ascends; the first is the example of semver 2.0.0 section 11.
  test.each([
    [
      "1.0.0-alpha",
      "1.0.0-alpha.1",
      "1.0.0-alpha.beta",
      "1.0.0-beta",
      "1.0.0-beta.2",
      "1.0.0-beta.11",
      "1.0.0-rc.1",
      "1.0.0",
    ],
    ["1.0.0", "2.0.0", "2.1.0", "2.1.1"],
    ["1.9.0", "1.10.0", "1.11.0"],
    ["0", "0.0.1", "0.1", "1"],
    ["1-rc", "v1", "1.0.1", "v1.1-0", "1.1"],
    [`1.0.${"9".repeat(39)}`, `1.0.1${"0".repeat(39)}`, `1.0.1${"0".repeat(38)}1`],
    [`1.0.0-${"9".repeat(39)}`, `1.0.0-1${"0".repeat(39)}`, "1.0.0-a"],
    // Numbers before text, text by ASCII, more identifiers after fewer.
    ["1.0.0-1", "1.0.0-1.1", "1.0.0-10", "1.0.0--", "1.0.0-A", "1.0.0-a", "1.0.0-a.0", "1.0.0-aa"],
    ["1.0.0-1a", "1.0.0-a1"],
    ["1.0.0-9007199254740992", "1.0.0-9007199254740993"],
  ])("ascends: %s, %s, …", (...versions) => {
    for (const [i, earlier] of versions.entries()) {
      for (const later of versions.slice(i + 1)) {
        expect({ earlier, later, order: Math.sign(compareVersions(earlier, later)) }).toStrictEqual(
          { earlier, later, order: -1 },
        );
        expect(Math.sign(compareVersions(later, earlier))).toBe(1);
      }
    }
  });

  test.each([
    ["1", "1.0", "1.0.0", "v1", "v1.0.0", "01.00.000"],
    ["1.0.0+a", "1.0.0+b", "1.0.0+001.x-y", "1+7", "1.0.0"],
    ["1.0.0-rc.1", "v1-rc.1", "1.0-rc.1+build", "1.0.0-rc.01"],
    [`${"0".repeat(20)}7`, "7"],
  ])("is the same: %s, %s, …", (...versions) => {
    for (const a of versions) {
      for (const b of versions)
        expect({ a, b, order: compareVersions(a, b) }).toMatchObject({ order: 0 });
    }
  });

  test.each([
    "",
    "v",
    "a",
    "1.",
    ".1",
    "1.2.3.4",
    "1.0.0-",
    "1.0.0-a..b",
    "1.0.0+",
    "V1",
    " 1",
    "1\n",
    "-1",
    "1.0.0-é",
  ])("is no version: %j", (text) => {
    expect(versionPattern.test(text)).toBe(false);
    expect(() => compareVersions(text, "1")).toThrow(RangeError);
  });

  test("is a total order", () => {
    const order = fc.property(version, version, version, (a, b, c) => {
      const sign = (x: string, y: string) => Math.sign(compareVersions(x, y));
      expect(sign(a, a)).toBe(0);
      expect(sign(a, b) + sign(b, a)).toBe(0);
      if (sign(a, b) <= 0 && sign(b, c) <= 0) expect(sign(a, c)).toBeLessThanOrEqual(0);
      if (sign(a, b) === 0) expect(sign(a, c)).toBe(sign(b, c));
    });
    fc.assert(order, settings);
  });

  test("of releases is that of their numbers, first part first", () => {
    const part = fc.bigInt({ min: 0n, max: 10n ** 40n });
    const parts = fc.tuple(part, part, part);
    const near = parts.chain(([a, b, c]) =>
      fc.tuple(
        fc.constant([a, b, c] as const),
        fc.oneof(parts, fc.constant([a, b, c + 1n] as const)),
      ),
    );
    const releases = fc.property(near, ([a, b]) => {
      const first = a.findIndex((it, i) => it !== b[i]);
      const order =
        first < 0 || a[first] === b[first]
          ? 0
          : Number((a[first] ?? 0n) > (b[first] ?? 0n)) * 2 - 1;
      expect(Math.sign(compareVersions(a.join("."), b.join(".")))).toBe(order);
    });
    fc.assert(releases, settings);
  });

  test("does not see the way a version is written", () => {
    const rewritten = fc.property(version, version, fc.nat(5), (a, b, zeros) => {
      const [core = "", ...rest] = a.split("-");
      const other = ["v", "0".repeat(zeros), core].join("") + rest.map((it) => `-${it}`).join("");
      expect(compareVersions(a, other)).toBe(0);
      expect(compareVersions(`${a}+build.1`, other)).toBe(0);
      expect(Math.sign(compareVersions(a, b))).toBe(Math.sign(compareVersions(other, `${b}+x`)));
    });
    fc.assert(rewritten, settings);
  });
});
