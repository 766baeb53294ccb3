import { formatContentRange, formatRange, parseContentRange, parseRange, resolveRange } from "./ranges";

test.each([
  ["bytes=0-0", { start: 0, end: 0 }],
  ["bytes=5-", { start: 5 }],
  ["bytes=-7", { suffixBytes: 7 }],
  [" bytes=1-2 ", { start: 1, end: 2 }],
])("range: %j is read and written again", (text, range) => {
  expect(parseRange(text)).toEqual(range);
  expect(formatRange(range)).toBe(text.trim());
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
])("range: %j is not one byte range", (text) => expect(parseRange(text)).toBeUndefined());

test.each([
  ["bytes 0-0/1", { start: 0, end: 0, resourceBytes: 1 }],
  ["bytes 5-9/10", { start: 5, end: 9, resourceBytes: 10 }],
  [" bytes 5-9/* ", { start: 5, end: 9, resourceBytes: null }],
])("range: the Content-Range %j is read and written again", (text, told) => {
  expect(parseContentRange(text)).toEqual(told);
  expect(formatContentRange(told, told.resourceBytes)).toBe(text.trim());
});

test.each([
  ["bytes 5-9/9"],
  ["bytes 9-5/100"],
  ["bytes */100"],
  ["bytes 5-/100"],
  ["items 5-9/100"],
  ["bytes 0-9999999999999999/*"],
  ["bytes 0-1/2, bytes 3-4/5"],
  [""],
  [null],
  [undefined],
])("range: %j is not a Content-Range", (text) => expect(parseContentRange(text)).toBeUndefined());

test.each([
  [
    { start: 3, end: 5 },
    { start: 3, end: 5 },
  ],
  [
    { start: 3, end: 99 },
    { start: 3, end: 9 },
  ],
  [{ start: 9 }, { start: 9, end: 9 }],
  [{ start: 10 }, undefined],
  [{ suffixBytes: 4 }, { start: 6, end: 9 }],
  [{ suffixBytes: 40 }, { start: 0, end: 9 }],
  [{ suffixBytes: 0 }, undefined],
])("range: of a resource of 10 bytes, %j asks for %j", (range, part) => expect(resolveRange(range, 10)).toEqual(part));
