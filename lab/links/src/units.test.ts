import { parseQuantity, RATE, SHARE, SIZE, TIME } from "./units";

test.each([
  [RATE, "896 KB/s", 896_000],
  [RATE, "10 Mbit/s", 1_250_000],
  [RATE, "1KiB/s", 1_024],
  [RATE, 5_000, 5_000],
  [TIME, "25 ms", 25],
  [TIME, "0.5 s", 500],
  [TIME, 0, 0],
  [SHARE, "2 %", 0.02],
  [SHARE, 0.02, 0.02],
  [SHARE, "100%", 1],
  [SIZE, "64 KB", 64_000],
])("units: %p reads %p as %p", (quantity, text, expected) => {
  expect(parseQuantity(quantity, text)).toBe(expected);
});

test.each([
  [RATE, "99 B/s"],
  [RATE, "896 KB"],
  [RATE, "fast"],
  [RATE, "-1 MB/s"],
  [RATE, "1 constructor"],
  [TIME, "61 min"],
  [SHARE, "101 %"],
  [SHARE, 1.01],
  [SIZE, "0 B"],
  [SIZE, Number.NaN],
  [SIZE, null],
])("units: %p refuses %p", (quantity, text) => {
  expect(parseQuantity(quantity, text)).toBeUndefined();
});
