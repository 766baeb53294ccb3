/** The test bytes and the Range parser of the sample origin. */
import { rangeOf, sizeBytes, sizeBytesPieces } from "./bytes";

describe("sample bytes", () => {
  test("a range equals the same part of the whole", () => {
    const whole = sizeBytes(0, 200_000);
    expect(Buffer.compare(sizeBytes(65_530, 131_080), whole.subarray(65_530, 131_080))).toBe(0);
    expect(Buffer.compare(Buffer.concat([...sizeBytesPieces(0, 200_000)]), whole)).toBe(0);
  });

  test("neighbouring blocks of a packet's size differ", () => {
    expect(Buffer.compare(sizeBytes(0, 1100), sizeBytes(1100, 2200))).not.toBe(0);
    expect(Buffer.compare(sizeBytes(0, 1100), sizeBytes(65_536, 66_636))).not.toBe(0);
  });

  test("an empty file has no bytes and no pieces", () => {
    expect(sizeBytes(0, 0)).toHaveLength(0);
    expect([...sizeBytesPieces(0, 0)]).toHaveLength(0);
  });
});

describe("Range header", () => {
  test.each([
    [undefined, 10, { kind: "whole" }],
    ["bytes=0-0", 10, { kind: "range", start: 0, end: 0 }],
    ["bytes=3-", 10, { kind: "range", start: 3, end: 9 }],
    ["bytes=3-99", 10, { kind: "range", start: 3, end: 9 }],
    ["bytes=9-9", 10, { kind: "range", start: 9, end: 9 }],
    ["bytes=10-10", 10, { kind: "unsatisfiable" }],
    ["bytes=-4", 10, { kind: "range", start: 6, end: 9 }],
    ["bytes=-40", 10, { kind: "range", start: 0, end: 9 }],
    ["bytes=-0", 10, { kind: "unsatisfiable" }],
    ["bytes=0-", 0, { kind: "unsatisfiable" }],
    ["bytes=5-4", 10, { kind: "whole" }],
    ["bytes=0-1,4-5", 10, { kind: "whole" }],
    ["items=0-1", 10, { kind: "whole" }],
  ])("%s of %i bytes", (header, totalBytes, outcome) => {
    expect(rangeOf(header, totalBytes)).toEqual(outcome);
  });
});
