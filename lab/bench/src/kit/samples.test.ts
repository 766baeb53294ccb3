import { appendFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { appendSamples, packSamples, readSamples } from "./samples";

test("samples: they are read again, packed or not, without a line that was cut short", () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-samples-test-"));
  const file = path.join(folder, "downloads.jsonl");
  const visits = (): number[] => readSamples<{ visit: number }>(file).map(({ visit }) => visit);
  try {
    appendSamples(file, [{ visit: 0 }, { visit: 1 }]);
    packSamples(file, readSamples(file));
    expect([readdirSync(folder), visits()]).toEqual([["downloads.jsonl.gz"], [0, 1]]);
    appendSamples(file, [{ visit: 2 }]);
    appendFileSync(file, '{"visit":3');
    expect(visits()).toEqual([0, 1, 2]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
