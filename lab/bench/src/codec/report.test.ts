import type { Figure } from "./figures";
import { markdownSection, terminalTable, type Run } from "./report";

const figure: Figure = { what: "encode over somebody", unit: "x", value: 1.1, floor: 1.2, aim: 1.35, note: "500 MB/s" };
const run: Run = {
  date: "2026-01-02",
  command: "npm run bench -- codec",
  rounds: 3,
  rivals: ["ISA-L 2.31.1"],
  wasmModules: [{ name: "codec.wasm", bytes: 30000 }],
  machine: {
    processor: "P",
    cores: 2,
    features: ["avx2"],
    system: "S",
    compiler: "C",
    node: "20",
    chromium: "Chromium 1",
  },
  figures: [figure, { ...figure, what: "repair", value: undefined, note: "" }],
  rows: [],
};

test("report: the table shows value, floor, aim and whether they are met", () => {
  const [, first, second] = terminalTable(run.figures).split("\n");
  expect(first).toMatch(/^encode over somebody +1\.10x +1\.2x +1\.35x +NOT MET$/);
  expect(second).toMatch(/^repair +- +1\.2x +1\.35x +not measured$/);
});

test("report: the section names what falls short and what was not measured", () => {
  const section = markdownSection(run, "images/codec.png");
  expect(section).toContain("Under the floor in this run:\n\n- encode over somebody: 1.10x, floor 1.2x (500 MB/s)");
  expect(section).toContain("Not measured in this run:\n\n- repair");
  expect(section).toContain("(images/codec.png)");
});
