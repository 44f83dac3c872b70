import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { frameHead, frameTypes, readFrames } from "../bench/load/frames.ts";
import { parseH2load } from "../bench/load/h2load.ts";
import { passing, recalled, remembered } from "../bench/load/hpack.ts";
import { pushBodies } from "../bench/load/push-bodies.ts";
import { median, percentile, spreadOf } from "../bench/measure/stats.ts";
import { figure, tableText } from "../bench/measure/table.ts";
import { OptionError, readOptions } from "../bench/options.ts";
import { scenarios } from "../bench/scenarios.ts";
import {
  PushStateRequestSchema,
  PushStateResponseSchema,
  PushStatus,
} from "../gen/sealflow/v1/record_pb.ts";

// What is pure in the measurements, and that the program starts. Nothing here takes a time.

const report = `starting benchmark...
spawning thread #0: 4 total client(s). Timing-based test with 0s of warm-up time and 2s of main duration for measurements.
Main benchmark duration is started for thread #0. Stopping all clients.

finished in 2.00s, 1424.50 req/s, 1.61MB/s
requests: 2849 total, 2913 started, 2849 done, 2845 succeeded, 4 failed, 1 errored, 2 timeout
status codes: 2845 2xx, 0 3xx, 3 4xx, 1 5xx
traffic: 3.22MB (3377664) total, 150.25KB (153856) headers (space savings 71.58%), 3.00MB (3145728) data
                     min         max         mean         sd        +/- sd
time for request:     2.62ms    104.39ms     44.73ms     14.73ms    73.32%
`;

describe("a report of h2load", () => {
  test("is read", () => {
    expect(parseH2load(report)).toEqual({
      perSecond: 1424.5,
      succeeded: 2845,
      failed: 4 + 1 + 2 + 3 + 1,
      bodyBytes: 3_145_728,
    });
  });

  test("that is none is refused", () => {
    expect(() => parseH2load("unable to connect")).toThrow("h2load reports no");
    expect(() => parseH2load(report.replace(/^status codes.*$/m, ""))).toThrow("no status codes");
  });
});

describe("statistics", () => {
  test("take the middle, or the mean of the two in the middle", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(() => median([])).toThrow(RangeError);
  });

  test("take a percentile that so many values do not exceed", () => {
    const values = Array.from({ length: 101 }, (_, i) => 100 - i);
    expect([0, 0.5, 0.99, 1].map((q) => percentile(values, q))).toEqual([0, 50, 99, 100]);
    expect(spreadOf([5, 1, 9])).toEqual({ median: 5, min: 1, max: 9 });
  });
});

describe("a table", () => {
  test("has its names to the left and its figures to the right", () => {
    const table = {
      title: "calls",
      head: ["", "call/s"],
      rows: [
        ["sealflow", "12,345"],
        ["x", "1"],
      ],
    };
    expect(tableText(table)).toBe(
      [
        "calls",
        "            call/s",
        "  --------  ------",
        "  sealflow  12,345",
        "  x              1",
        "",
      ].join("\n"),
    );
  });

  test.each([
    [12345.6, "12,346"],
    [99.94, "99.9"],
    [1.234, "1.23"],
    [0, "0.00"],
    [Number.NaN, "-"],
  ])("shows %d as %s", (value, text) => {
    expect(figure(value)).toBe(text);
  });
});

describe("the generator", () => {
  test("reads whole frames, and keeps what is left", () => {
    const body = Buffer.from("body");
    const frame = Buffer.concat([
      frameHead(body.length, frameTypes.data, { flags: 1, id: 7 }),
      body,
    ]);
    const seen: unknown[] = [];
    const rest = readFrames(Buffer.concat([frame, frame.subarray(0, 10)]), (type, head, bytes) => {
      seen.push([type, head, bytes.toString()]);
    });
    expect(seen).toEqual([[frameTypes.data, { flags: 1, id: 7 }, "body"]]);
    expect(rest).toEqual(frame.subarray(0, 10));
  });

  test("encodes header fields as RFC 7541 says", () => {
    // Appendix C.2.1.
    const field = ["custom-key", "custom-header"] as const;
    const hex = "0a637573746f6d2d6b65790d637573746f6d2d686561646572";
    expect(remembered([field]).toString("hex")).toBe(`40${hex}`);
    expect(passing([field]).toString("hex")).toBe(`00${hex}`);
    // Appendix C.1.2: 1337 is 127 and 1210 in a prefix of 7 bits.
    expect(passing([["a", "x".repeat(1337)]]).subarray(3, 6)).toEqual(Buffer.from([127, 0xba, 9]));
    expect(recalled([field, ["b", "c"]])).toEqual(Buffer.from([0x80 | 63, 0x80 | 62]));
    expect(() => recalled([["a", "x".repeat(4096)]])).toThrow(RangeError);
  });

  test.each([1, 3])("pushes %d records that no other push has", (records) => {
    const bodies = pushBodies(records);
    const keys = [bodies.next(), bodies.next()].flatMap((body) => {
      const { entityId, records: list } = fromBinary(PushStateRequestSchema, body);
      return records === 1 ? [entityId] : list.map((record) => record.entityId);
    });
    expect(new Set(keys).size).toBe(2 * records);
    expect(keys).toEqual(keys.toSorted());
  });

  test("sees whether each record of a push was made", () => {
    const answer = (...statuses: PushStatus[]) =>
      Buffer.from(
        toBinary(
          PushStateResponseSchema,
          create(PushStateResponseSchema, {
            results: statuses.map((status) => ({
              status,
              record: { encryptedData: "x".repeat(300) },
            })),
          }),
        ),
      );
    const { CREATED, CONFLICT } = PushStatus;
    const bodies = pushBodies(2);
    expect(bodies.isAllCreated(answer(CREATED, CREATED))).toBe(true);
    expect(bodies.isAllCreated(answer(CREATED, CONFLICT))).toBe(false);
    expect(bodies.isAllCreated(answer(CREATED))).toBe(false);
    const single = create(PushStateResponseSchema, { status: CONFLICT });
    const bytes = Buffer.from(toBinary(PushStateResponseSchema, single));
    expect(pushBodies(1).isAllCreated(bytes)).toBe(false);
  });
});

describe("the options", () => {
  test("have defaults, and are read", () => {
    expect(readOptions([])).toMatchObject({ task: "run", only: [], settings: { rounds: 5 } });
    const given = readOptions(["--only", "soak", "--only", "start", "--sizes", "10,20"]);
    expect(given.only).toEqual(["soak", "start"]);
    expect(given.settings.sizes).toEqual([10, 20]);
  });

  test.each([["--rounds=0"], ["--seconds=x"], ["--sizes=10,"], ["--unknown"], ["word"]])(
    "refuse %s",
    (argument) => {
      expect(() => readOptions([argument])).toThrow(OptionError);
    },
  );
});

describe("the program", () => {
  const bench = fileURLToPath(new URL("../bench/bench.ts", import.meta.url));
  const run = promisify(execFile);

  test("lists every scenario", async () => {
    const { stdout } = await run(process.execPath, [bench, "--list"]);
    const names = stdout.split("\n").map((line) => line.split(" ")[0]);
    expect(names.slice(0, -1)).toEqual(scenarios.map(({ name }) => name));
    expect(new Set(names).size).toBe(names.length);
  });

  test("refuses a scenario that there is none of", async () => {
    const ended = run(process.execPath, [bench, "--only", "none"]);
    await expect(ended).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("no scenario none"),
    });
  });
});
