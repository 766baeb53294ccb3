/**
 * Writes the pages of documentation that the tables of this package describe. Build first (`npm run build`).
 *
 *   node contract/write-docs.mjs [--check]
 *
 * With --check no file is written, and the exit status is 1 if a page differs from its table.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { recordsPage } from "./dist/record-page.js";
import { settingsPage } from "./dist/settings/page.js";

const PAGES = { "docs/spec/records.md": recordsPage, "docs/spec/settings.md": settingsPage };

const isCheck = process.argv.includes("--check");
for (const [page, text] of Object.entries(PAGES)) {
  const file = new URL(`../${page}`, import.meta.url);
  if (!isCheck) {
    writeFileSync(file, text());
  } else if (readFileSync(file, "utf8") !== text()) {
    console.error(`${page} is out of date: run node contract/write-docs.mjs`);
    process.exitCode = 1;
  }
}
