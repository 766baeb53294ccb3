import { matrixDocument, reportIn, told } from "./document";

test("matrix document: reads what it has written, so that runs add up", () => {
  const report = new Map([
    ["chromium hls.js play", told("ok, 2 direct", "2026-01-02")],
    ["firefox plain updated", told("FAIL at 1.0 s of 2 s | no media\ncame", "2026-01-03")],
    ["firefox dash.js ranges", told("ok", "2026-01-03")],
  ]);
  const document = matrixDocument(report);
  expect(reportIn(document)).toEqual(report);
  expect(document).toContain("| **failed** (2026-01-03): at 1.0 s of 2 s no media came |");
  expect(reportIn("# Something else\n\n| a | b |\n| --- | --- |\n| c | d |\n")).toEqual(new Map());
});

test("matrix document: a cell that was not played is empty, one that there is not is told from it", () => {
  const [, row = ""] = /^\| ranges \|(.*)\|$/m.exec(matrixDocument(new Map())) ?? [];
  expect(row.split("|").map((text) => text.trim())).toEqual(["–", "–", "–", "", "", "–", "–"]);
});
