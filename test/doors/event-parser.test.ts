import { describe, expect, test } from "vitest";
import { EventParser } from "./event-parser.ts";

// The reader that these tests trust, held against the examples of the standard (section 9.2.6).

/** What a stream says, however its bytes are cut. */
function read(text: string) {
  const bytes = Buffer.from(text);
  const whole = new EventParser().feed(bytes);
  const slow = new EventParser();
  const byByte = [...bytes].flatMap((byte) => slow.feed(Buffer.from([byte])));
  expect(byByte).toEqual(whole);
  return whole.map(({ event, data, lastEventId }) => [event, data, lastEventId]);
}

describe("the standard's examples", () => {
  test("lines of data", () => {
    expect(read("data: YHOO\ndata: +2\ndata: 10\n\n")).toEqual([["message", "YHOO\n+2\n10", ""]]);
  });

  test("comments, ids, and an event that is cut off", () => {
    const text =
      ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third";
    expect(read(`${text} event\n`)).toEqual([
      ["message", "first event", "1"],
      ["message", "second event", ""],
    ]);
  });

  test("empty data, and a space that belongs to the data", () => {
    expect(read("data\n\ndata\ndata\n\ndata:")).toEqual([
      ["message", "", ""],
      ["message", "\n", ""],
    ]);
    expect(read("data:test\n\ndata:  test\n\n")).toEqual([
      ["message", "test", ""],
      ["message", " test", ""],
    ]);
  });
});

test("a byte order mark, every end of line, characters of several bytes", () => {
  const text = "\uFEFFevent: ä\r\ndata: 🌱\rdata: b\r\n\r\nid: 1\u0000\nretry: 10\ndata: c\n\n";
  expect(read(text)).toEqual([
    ["ä", "🌱\nb", ""],
    ["message", "c", ""],
  ]);
});
