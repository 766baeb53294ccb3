import { checkContentRange } from "./range";

test("range: Content-Range must have the start that was asked for, end no later, and fit Content-Length", () => {
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
  expect(() => checkContentRange("bytes 0-9/100", undefined, 10)).toThrow("asked for the whole, got bytes 0-9/100");
  expect(() => checkContentRange("bytes 0-99/600", { start: 5, end: 9 }, 100)).toThrow(
    "asked for bytes=5-9, got bytes 0-99/600",
  );
});
