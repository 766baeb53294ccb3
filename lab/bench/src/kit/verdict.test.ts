import { figureTable, verdictOf, type Figure } from "./verdict";

const figure = (got: number, better: Figure["better"], floor: number, aim: number): Figure => ({
  what: "",
  got,
  floor,
  aim,
  better,
  unit: "",
});

test("verdict: a figure that was not measured is never met", () => {
  for (const better of ["more", "less", "nearOne"] as const)
    expect(verdictOf(figure(NaN, better, 1, 1))).toBe("not measured");
});

test.each([
  [0.89, "more", 0.9, 0.95, "NOT MET"],
  [0.9, "more", 0.9, 0.95, "met"],
  [0.96, "more", 0.9, 0.95, "aim met"],
  [16, "less", 15, 3, "NOT MET"],
  [15, "less", 15, 3, "met"],
  [3, "less", 15, 3, "aim met"],
  [1.34, "more", 1.2, 1.35, "met"],
  [1.19, "more", 1.2, 1.35, "NOT MET"],
  [4.01, "less", 6, 4, "met"],
  [6.01, "less", 6, 4, "NOT MET"],
  [0.49, "nearOne", 2, 1.4, "NOT MET"],
  [2.1, "nearOne", 2, 1.4, "NOT MET"],
  [0.5, "nearOne", 2, 1.4, "met"],
  [1.2, "nearOne", 2, 1.4, "aim met"],
] as const)("verdict: %d, %s, floor %d, aim %d: %s", (got, better, floor, aim, verdict) => {
  expect(verdictOf(figure(got, better, floor, aim))).toBe(verdict);
});

test("verdict: a floor that the links do not allow is beyond the wire, not missed", () => {
  const missed = figure(1.2, "less", 0.95, 0.9);
  expect([0.9, 1, undefined].map((wire) => verdictOf(wire === undefined ? missed : { ...missed, wire }))).toEqual([
    "NOT MET",
    "beyond the wire",
    "NOT MET",
  ]);
});

test("verdict: the table shows what was got, the limits and the verdict, and no empty column", () => {
  const lines = figureTable([
    { ...figure(1.1, "more", 1.2, 1.35), what: "encode", unit: "x" },
    { ...figure(NaN, "nearOne", 2, 1.4), what: "shares" },
  ]).split("\n");
  expect(lines[0]).toMatch(/^\| what +\| got +\| floor +\| aim +\| verdict +\|$/);
  expect(lines[2]).toMatch(/^\| encode +\| 1\.10x +\| 1\.2 +\| 1\.35 +\| NOT MET +\|$/);
  expect(lines[3]).toMatch(/^\| shares +\| - +\| 0\.50 \.\. 2 +\| 0\.71 \.\. 1\.4 +\| not measured +\|$/);
});
