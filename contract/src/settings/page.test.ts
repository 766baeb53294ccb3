import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settingsPage } from "./page";

test("docs/spec/settings.md is what `node contract/write-docs.mjs` writes", () => {
  const page = join(__dirname, "../../../docs/spec/settings.md");
  expect(readFileSync(page, "utf8")).toBe(settingsPage());
});
