/**
 * The matrix's report: a table a browser, each cell with the day it was last played. What a run has not played stays as
 * it was.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { markdownTable, repoRoot } from "@tributary/lab-stack";
import { PLAYERS, SCENARIOS, applies } from "./cells";

const DOCUMENT = path.join(repoRoot, "docs/matrix.md");
const BROWSERS = ["chromium", "firefox"] as const;
const NO_SUCH_CELL = "–";
const FAULT_CHARS_MAX = 100;

/** What is told of cells by `browser player scenario`. */
export type Report = ReadonlyMap<string, string>;

/** Reads what `matrixDocument` has written; empty for anything else. */
export function reportIn(document: string): Map<string, string> {
  const report = new Map<string, string>();
  for (const browser of BROWSERS) {
    const [, section = ""] = document.split(`\n## ${browser}\n`);
    const [head = [], , ...rows] = section
      .split("\n## ")[0]!
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) =>
        line
          .split("|")
          .slice(1, -1)
          .map((text) => text.trim()),
      );
    for (const [scenario, ...texts] of rows) {
      texts.forEach(
        (text, index) =>
          text !== "" && text !== NO_SUCH_CELL && report.set(`${browser} ${head[index + 1]} ${scenario}`, text),
      );
    }
  }
  return report;
}

/** A verdict of the matrix as a cell tells it. */
export function told(verdict: string, day: string): string {
  if (!verdict.startsWith("FAIL")) return `${verdict} (${day})`;
  const fault = verdict
    .slice("FAIL ".length)
    .replace(/[|\s]+/g, " ")
    .slice(0, FAULT_CHARS_MAX);
  return `**failed** (${day}): ${fault}`;
}

export function matrixDocument(report: Report): string {
  const tables = BROWSERS.map((browser) => {
    const rows = SCENARIOS.map(({ name }) => [
      name,
      ...PLAYERS.map((player) =>
        applies(player.name, name) ? (report.get(`${browser} ${player.name} ${name}`) ?? "") : NO_SUCH_CELL,
      ),
    ]);
    return `## ${browser}\n\n${markdownTable(["", ...PLAYERS.map(({ name }) => name)], rows)}`;
  });
  const why = SCENARIOS.flatMap(({ name, others }) => (others === undefined ? [] : [`- ${name}: ${others}`]));
  return (
    [
      "# The matrix",
      "Written by `npm run test:matrix -- --docs`, each cell with the day it was last played. What a cell has to do, and what `direct` counts, is in\n[extension.md](extension.md#the-matrix). Empty: not played. –: there is no such cell, see below.",
      ...tables,
      `## Cells that there are not\n\n${why.join("\n")}`,
    ].join("\n\n") + "\n"
  );
}

/** Writes docs/matrix.md: what it told before, and `verdicts` of today. */
export function writeReport(verdicts: ReadonlyMap<string, string>): void {
  const report = reportIn(existsSync(DOCUMENT) ? readFileSync(DOCUMENT, "utf8") : "");
  const day = new Date().toISOString().slice(0, 10);
  for (const [cell, verdict] of verdicts) report.set(cell, told(verdict, day));
  writeFileSync(DOCUMENT, matrixDocument(report));
}
