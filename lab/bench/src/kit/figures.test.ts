import { groupBy, median, quantile, rankedQuantile } from "./figures";

test.each([
  [[4, 1, 3, 2], 0.25, 1.75],
  [[4, 1, 3, 2], 0.5, 2.5],
  [[4, 1, 3, 2], 0.75, 3.25],
  [[7], 0.25, 7],
])("figures: of %j the quantile %d is %d", (values, share, expected) => {
  expect(quantile(values, share)).toBeCloseTo(expected);
});

test("figures: no values have no median", () => {
  expect(median([])).toBeNaN();
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
});

test("figures: the ranked quantile is one of the values", () => {
  expect([0, 0.5, 0.51, 1].map((share) => rankedQuantile([4, 1, 3, 2], share))).toEqual([1, 2, 3, 4]);
});

test("figures: groups keep the order of the items", () => {
  expect([...groupBy([5, 2, 7, 4], (value) => value % 2)]).toEqual([
    [1, [5, 7]],
    [0, [2, 4]],
  ]);
});
