import { readFileSync } from "node:fs";
import path from "node:path";
import { recordFields } from "./record-fields";
import { recordsPage } from "./record-page";

test("record fields: each field has exactly one source", () => {
  for (const [name, { record, path: within, summed, computed, sql }] of recordFields) {
    const stored = [record, within, summed, computed].filter((source) => source !== undefined).length;
    // A derived field may be in the record, too: Origo does not keep what the client says of it.
    expect([name, sql === undefined ? stored : stored <= 1]).toEqual([name, sql === undefined ? 1 : true]);
  }
});

test("record fields: a help text is a sentence, and a choice has values", () => {
  for (const [name, { type, help, values }] of recordFields) {
    expect([name, help]).toEqual([name, expect.stringMatching(/^[A-Z].*\.$/)]);
    expect([name, values !== undefined]).toEqual([name, type === "choice"]);
  }
});

test("record fields: docs/spec/records.md is current (node contract/write-docs.mjs writes it)", () => {
  const page = path.join(__dirname, "../../docs/spec/records.md");
  expect(readFileSync(page, "utf8")).toBe(recordsPage());
});
