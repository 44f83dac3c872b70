import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isoTime } from "../src/domain/iso-time.ts";

describe("a time as text", () => {
  test.each([
    [0, "1970-01-01T00:00:00.000Z"],
    [1_767_607_200_007, "2026-01-05T10:00:00.007Z"],
    [1_709_251_199_999, "2024-02-29T23:59:59.999Z"],
    [-1, "1969-12-31T23:59:59.999Z"],
    [253_402_300_799_999, "9999-12-31T23:59:59.999Z"],
    [-62_135_596_800_000, "0001-01-01T00:00:00.000Z"],
  ])("%d is %s", (epochMs, text) => {
    expect(isoTime(epochMs)).toBe(text);
  });

  test("is what Date prints, over more days than are remembered", () => {
    const times = fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 });
    const isSame = (epochMs: number) => isoTime(epochMs) === new Date(epochMs).toISOString();
    fc.assert(fc.property(times, isSame), { numRuns: 5000 });
  });

  test.each([Number.NaN, 8_650_000_000_000_000, Infinity])("%d is none", (epochMs) => {
    expect(() => isoTime(epochMs)).toThrow(RangeError);
  });
});
