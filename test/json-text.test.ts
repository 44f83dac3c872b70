import { expect, test } from "vitest";
import { canonicalJson, parseJson, problemOfJsonText } from "../src/domain/json-text.ts";

test.each([
  '{"n":12345678901234567890}',
  "[1e400,0.1,1.0000000000000000001,-0,12]",
  '{"text":"1234567890123456789","n":1}',
  "[9007199254740993]",
])("%s is written again as it came", (text) => {
  expect(JSON.stringify(parseJson(text))).toBe(text);
});

test("equal values have one text, whatever the order of their keys", () => {
  expect(canonicalJson('{"b":[{"d":1,"c":2}],"a":null}')).toBe('{"a":null,"b":[{"c":2,"d":1}]}');
});

test.each([
  ["{", "must be JSON text"],
  ['"\\u0000"', "must not hold NUL"],
  ['{"\\ud800":1}', "must not hold a lone surrogate"],
  [`${"[".repeat(101)}${"]".repeat(101)}`, "must not be nested deeper than 100"],
])("%s is refused", (text, problem) => {
  expect(problemOfJsonText(text)).toBe(problem);
});

test("what is nested as deep as may be is taken", () => {
  expect(problemOfJsonText(`${"[".repeat(100)}${"]".repeat(100)}`)).toBeNull();
});
