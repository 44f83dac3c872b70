import { expect, test } from "vitest";
import { createLog, describeFault } from "../src/calls/log.ts";

test("a fault in the log says its class, its code and where it came from, never its message", () => {
  const message = "Failed query: insert into t\nparams: CIPHERTEXT\n    at CIPHERTEXT (x.ts:1:1)";
  const fault = Object.assign(new Error(message, { cause: new TypeError("CIPHERTEXT") }), {
    code: "SQLITE_FULL",
  });
  const said = describeFault(fault);
  expect(said).toMatch(/^Error SQLITE_FULL at /);
  expect(said).toContain("caused by TypeError at ");
  expect(said).toContain("log.test.ts");
  expect(said).not.toContain("CIPHERTEXT");
});

test("what is thrown and is no error is named by its type alone", () => {
  expect(describeFault("CIPHERTEXT")).toBe("string");
});

test("an error whose stack was replaced tells nothing of it", () => {
  const fault = Object.assign(new Error("one"), { stack: "    at CIPHERTEXT (x.ts:1:1)" });
  expect(describeFault(fault)).not.toContain("CIPHERTEXT");
});

test("a log line is one line of JSON, with the time first", () => {
  const lines: string[] = [];
  const log = createLog(
    (line) => lines.push(line),
    () => new Date(0),
  );
  log("info", "two\nlines", { rpc: "GetWorkflow" });
  expect(lines).toEqual([
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","message":"two\\nlines","rpc":"GetWorkflow"}\n',
  ]);
});
