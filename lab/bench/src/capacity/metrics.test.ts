import { histogramQuantile, parseMetrics, stageSeconds } from "./metrics";

const textOf = (counts: readonly number[], coding: number): string => `
# HELP tributary_response_seconds Time
tributary_response_seconds_bucket{le="0.01"} ${counts[0]}
tributary_response_seconds_bucket{le="0.1"} ${counts[1]}
tributary_response_seconds_bucket{le="+Inf"} ${counts[2]}
tributary_response_seconds_count ${counts[2]}
tributary_coder_stage_seconds_sum{stage="coding"} ${coding}
`;

test("metrics: quantiles and stages are those between two readings", () => {
  const [before, after] = [parseMetrics(textOf([5, 5, 5], 1)), parseMetrics(textOf([5, 15, 15], 3.5))];
  expect(histogramQuantile(before, after, "tributary_response_seconds", 0.5)).toBeCloseTo(0.055);
  expect(stageSeconds(before, after)).toEqual({ coding: 2.5 });
});

test("metrics: above the last limit the limit is known, and without counts nothing is", () => {
  const none = parseMetrics("");
  expect(histogramQuantile(none, parseMetrics(textOf([0, 0, 4], 0)), "tributary_response_seconds", 0.5)).toBe(0.1);
  expect(histogramQuantile(none, none, "tributary_response_seconds", 0.5)).toBeNaN();
  expect(stageSeconds(none, none)).toEqual({});
});
