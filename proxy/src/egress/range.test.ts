import { checkContentRange, parseRangeHeader, rangeHeader } from "./range";

test.each([
  ["bytes=0-0", { start: 0, end: 0 }],
  ["bytes=5-", { start: 5 }],
  ["bytes=-7", { suffixBytes: 7 }],
  [" bytes=1-2 ", { start: 1, end: 2 }],
])("range: %j is read and written again", (text, range) => {
  expect(parseRangeHeader(text)).toEqual(range);
  expect(rangeHeader(range)).toBe(text.trim());
});

test.each([
  ["bytes=2-1"],
  ["bytes=-"],
  ["bytes=0-1,3-4"],
  ["items=0-1"],
  ["bytes=a-b"],
  ["bytes=0-9999999999999999"],
  [""],
  ["bytes=0-1\r\nx: y"],
])("range: %j is not one byte range", (text) => expect(parseRangeHeader(text)).toBeUndefined());

test("range: Content-Range must begin where it was asked to, end no later, and agree with Content-Length", () => {
  expect(checkContentRange("bytes 5-9/100", { start: 5, end: 9 }, 5)).toBe(5);
  expect(checkContentRange("bytes 5-7/8", { start: 5, end: 9 }, undefined)).toBe(3);
  expect(checkContentRange("bytes 5-9/*", { start: 5 }, 5)).toBe(5);
  expect(checkContentRange("bytes 95-99/100", { suffixBytes: 5 }, 5)).toBe(5);
  for (const [header, announced] of [
    ["bytes 4-9/100", 6],
    ["bytes 5-10/100", 6],
    ["bytes 5-9/100", 4],
    ["bytes 9-5/100", 5],
    [undefined, 5],
  ] as const) {
    expect(() => checkContentRange(header, { start: 5, end: 9 }, announced)).toThrow();
  }
  expect(() => checkContentRange("bytes 0-9/100", undefined, 10)).toThrow();
});
