import { csvCell, withoutGuard } from "./csv";

test.each([
  ["=1+1", "'=1+1"],
  ["+1", "'+1"],
  ["-1", "'-1"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["\t=1", "'\t=1"],
  ["=1,2", '"\'=1,2"'],
  ["'=1", "''=1"],
  ["'plain", "'plain"],
  ["1=1", "1=1"],
  ['say "x"', '"say ""x"""'],
  ["", '""'],
  [-1, "-1"],
  [null, ""],
  [undefined, ""],
])("csv: %j is written as %j", (cell, text) => expect(csvCell(cell)).toBe(text));

test("csv: a text with any apostrophes at its start reads back unchanged", () => {
  for (const text of ["=1", "'=1", "''=1", "'", "'a", "-", "", "\n="])
    expect(withoutGuard(csvCell(text).replace(/^"([^]*)"$/, "$1"))).toBe(text);
});
