import { caseKey, planGroups, type Case, type Engines } from "./cases";
import { verdictOf } from "../kit/verdict";
import { figuresOf, findCliff } from "./figures";
import { rowsOf } from "./rows";
import { median } from "../kit/figures";
import { GroupSamples, speedRatio, type Measured } from "./samples";

const engines: Engines = {
  native: ["gfni512", "avx2", "scalar", "reference"],
  rust: [],
  node: ["simd128"],
  chromium: ["relaxed-simd", "simd128", "scalar"],
  addon: ["gfni512"],
};
const oneSecondEach = (quick: boolean): GroupSamples[] =>
  planGroups(engines, quick).map(
    ({ name, cases }) =>
      new GroupSamples(
        name,
        cases.map((c): Measured => ({ case: c, seconds: [1, 1] })),
      ),
  );
const caseOf = (rest: Partial<Case>): Case => ({
  runner: "native",
  contender: "ours",
  path: "avx2",
  request: "encode",
  g: 24,
  symbolBytes: 100,
  outputs: 1,
  ...rest,
});

test("samples: the median of an even count is the mean of the middle two; of nothing it is no number", () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBeNaN();
});

test("samples: a ratio is the median of the rounds' ratios, so load in one round does not shift it", () => {
  const ours: Measured = { case: caseOf({ outputs: 4 }), seconds: [1, 10, 1] };
  const rival: Measured = { case: caseOf({ contender: "isa-l", outputs: 2 }), seconds: [1, 10, 1] };
  expect(speedRatio(ours, rival)).toBe(2);
});

test.each([true, false])(
  "plan: no case is measured twice in a group (quick %p), and every figure has its cases",
  (quick) => {
    for (const { cases } of planGroups(engines, quick)) expect(new Set(cases.map(caseKey)).size).toBe(cases.length);
    for (const figure of figuresOf(oneSecondEach(quick)))
      expect([figure.what, Number.isFinite(figure.got)]).toEqual([figure.what, true]);
  },
);

test("plan: what is absent leaves its figures without a value, not with a guess", () => {
  const none: Engines = { native: [], rust: [], node: [], chromium: [], addon: [] };
  const samples = planGroups(none, true).map(({ name }) => new GroupSamples(name, []));
  for (const figure of figuresOf(samples)) expect(verdictOf(figure)).toBe("not measured");
});

test("rows: rates follow from seconds, and ours are told from rivals by null", () => {
  const rows = rowsOf([
    new GroupSamples("group", [
      { case: caseOf({ outputs: 2 }), seconds: [1, 2, 4] },
      { case: caseOf({ contender: "rlnc", path: "-" }), seconds: [1] },
    ]),
  ]);
  expect(rows[0]).toMatchObject({
    op: "encode",
    engine: "avx2",
    rival: null,
    runtime: "native",
    outputBytesPerSec: 100,
    gfBytesPerSec: 2400,
    outputBytesPerSecRange: [50, 200],
    rounds: 3,
  });
  expect(rows[1]).toMatchObject({ rival: "rlnc", engine: "-" });
});

test("cliff: the worst point against the geometric mean of its neighbours, along either axis", () => {
  const point = (symbolBytes: number, rate: number): Measured => ({
    case: caseOf({ symbolBytes }),
    seconds: [(symbolBytes * 24) / rate],
  });
  expect(findCliff([new GroupSamples("grid", [point(4096, 400), point(256, 100), point(1024, 50)])])).toMatchObject({
    ratio: expect.closeTo(0.25),
  });
  expect(findCliff([new GroupSamples("grid", [point(256, 100), point(1024, 50)])])).toBeUndefined();
});
