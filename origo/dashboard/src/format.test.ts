/** Tests of how the page writes numbers, and of the sums in a record. */
import { accountsOf, gapPackets, speedWithoutServer } from "./accounts";
import { bytes, cellOf, clock, count, counted, leaf, quantity, rate, seconds, span } from "./format";
import { bareRecordOf, recordOf } from "../../../contract/test/samples";

test("bytes change their unit at a thousand and never show 1000", () => {
  expect([0, 999, 1000, 999_499, 999_500, 1_620_000, 99_949_999, 999_600_000_000].map(bytes)).toEqual([
    "0 B",
    "999 B",
    "1.00 kB",
    "999 kB",
    "1.00 MB",
    "1.62 MB",
    "99.9 MB",
    "1.00 TB",
  ]);
});

test("counts, rates, durations and spans", () => {
  expect([0, 1, 2000].map((value) => counted(value, "request"))).toEqual(["0 requests", "1 request", "2,000 requests"]);
  expect([0, 999, 1000, 1_234_567].map(count)).toEqual(["0", "999", "1,000", "1,234,567"]);
  expect([null, 0, 1_890_000].map(rate)).toEqual(["–", "0.00 MB/s", "1.89 MB/s"]);
  expect([undefined, 0, 271.4].map(seconds)).toEqual(["–", "0.000 s", "0.271 s"]);
  expect([59_999, 60_000, 3_599_000, 3_600_000, 90_000_000].map(span)).toEqual([
    "59 s",
    "1 min 0 s",
    "59 min 59 s",
    "1 h 00 min",
    "1 d 1 h",
  ]);
});

test("a time of another day has its date", () => {
  const noon = new Date(2026, 10, 21, 12, 3, 4).getTime();
  expect([clock(noon, noon + 1000), clock(noon, noon + 86_400_000)]).toEqual(["12:03:04", "2026-11-21 12:03:04"]);
});

test("a URL is named by its last part, decoded where possible", () => {
  expect(["http://h.example/", "http://h.example/a/b%20c.mp4", "http://h.example/%ff/"].map(leaf)).toEqual([
    "h.example",
    "b c.mp4",
    "%ff",
  ]);
});

test("the packets and bytes of a record add up, and a gap is found", () => {
  const record = recordOf();
  const accounts = accountsOf(record);
  expect(accounts.total).toEqual({
    bytes: 112_716,
    packets: 101,
    innovative: 91,
    duplicate: 5,
    late: 4,
    rejected: 1,
    lost: 2,
  });
  expect([gapPackets(accounts.total), accounts.directBytes, accounts.gapBytes]).toEqual([0, 0, 0]);
  expect(accountsOf(recordOf({ grossBytes: 112_717 })).gapBytes).toBe(1);
  expect(accountsOf(recordOf({ fallback: { kind: "stalled", message: "x", bytes: 1 } })).gapBytes).toBe(-1);
  expect(accountsOf(bareRecordOf())).toMatchObject({ directBytes: 112_716, gapBytes: 0 });
});

test("speed without server time is unknown when no other time is left", () => {
  expect(speedWithoutServer(recordOf({ netBytes: 1000, durationMs: 300, serverFetchMs: 100 }))).toBe(5000);
  expect(speedWithoutServer(recordOf({ durationMs: 300, serverFetchMs: 300 }))).toBeNull();
});

test("a quantity has three digits and a fitting unit", () => {
  expect([
    quantity(0.0531, "ms"),
    quantity(279.4, "ms"),
    quantity(1234, "ms"),
    quantity(896_000, "B/s"),
    quantity(-1_620_000, "B"),
    quantity(0.88721, null),
    quantity(24, "packets"),
    quantity(NaN, "ms"),
  ]).toEqual(["0.0531 ms", "279 ms", "1.23 s", "896 kB/s", "-1.62 MB", "0.887", "24 packets", "–"]);
});

test("the cells of a column share a unit, and a missing value is a dash", () => {
  expect([
    cellOf(279.4, "number", "ms", 0),
    cellOf(0.5, "number", "ms", 0),
    cellOf(1_890_000, "number", "B/s", 0),
    cellOf(0.5, "number", null, 0),
    cellOf(4, "number", null, 0),
    cellOf(null, "text", null, 0),
    cellOf("", "text", null, 0),
    cellOf(false, "boolean", null, 0),
  ]).toEqual(["0.279 s", "0.5 ms", "1.89 MB/s", "0.500", "4", "–", "–", "no"]);
});
