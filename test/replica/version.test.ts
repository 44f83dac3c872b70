import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareVersions, isVersion, nextVersion } from "../../src/client/replica/version.ts";
import {
  compareVersions as compareAsServer,
  versionPattern as serverPattern,
} from "../../src/domain/version.ts";

const number = fc.oneof(fc.nat(12).map(String), fc.stringMatching(/^\d{1,9}$/));
const identifier = fc.oneof(number, fc.stringMatching(/^[0-9A-Za-z-]{1,4}$/));
const part = (sign: string) =>
  fc.oneof(
    fc.constant(""),
    fc.array(identifier, { minLength: 1, maxLength: 3 }).map((all) => sign + all.join(".")),
  );
const version = fc
  .tuple(
    fc.constantFrom("", "v"),
    fc.array(number, { minLength: 1, maxLength: 3 }),
    part("-"),
    part("+"),
  )
  .map(([prefix, numbers, preRelease, build]) => prefix + numbers.join(".") + preRelease + build)
  .filter((text) => text.length <= 60);

describe("a version", () => {
  test("is ordered on a device as the server orders it", () => {
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(Math.sign(compareVersions(a, b))).toBe(Math.sign(compareAsServer(a, b)));
      }),
      { numRuns: 2000 },
    );
  });

  test("is read on a device as the server reads it", () => {
    const text = fc.oneof(version, fc.string(), fc.stringMatching(/^[v0-9a-z.+-]{0,12}$/));
    fc.assert(
      fc.property(text, (some) => {
        expect(isVersion(some)).toBe(serverPattern.test(some));
      }),
      { numRuns: 2000 },
    );
  });

  test("has a next one, which is greater", () => {
    fc.assert(
      fc.property(version, (some) => {
        const next = nextVersion(some);
        expect(compareAsServer(next, some)).toBeGreaterThan(0);
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    [undefined, "1"],
    ["1", "2"],
    ["v1.4", "v1.5"],
    ["1.2.9", "1.2.10"],
    ["1.0.0-rc.1", "1.0.0"],
    ["1.0.0+build", "1.0.1"],
    ["99999999999999999999", "100000000000000000000"],
  ])("after %s is %s", (some, next) => {
    expect(nextVersion(some)).toBe(next);
  });
});
