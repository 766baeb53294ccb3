import { geometryOf, type Geometry } from "./geometry";
import { firstOfSpans, partOf } from "./sharing";

const readersOf = (weights: number[]) => weights.map((weight, index) => ({ id: String(index), weight }));

test.each([
  [[1, 1, 1, 1], 0, 11],
  [[1, 1, 1, 1], 2, 43],
  [[1, 1, 1, 1], 2, 3],
  [[5, 1, 1], 2, 100],
  [[65535, 1], 0, 1],
  [[1, 2, 3], 4, 0],
  [[1], 2, 7],
])(
  "sharing: parts of weights %j with %i first generations cover %i generations once",
  (weights, firstGenerations, count) => {
    const readers = readersOf(weights);
    const times = new Array<number>(count).fill(0);
    readers.forEach((_, index) => {
      let before = -1;
      for (const { from, end } of partOf({ readers, firstGenerations }, index, count)) {
        expect(from).toBeGreaterThan(before);
        for (let at = from; at < end; at++) times[at]!++;
        before = end;
      }
    });
    expect(times).toEqual(times.map(() => 1));
  },
);

test("sharing: a proxy that brings twice as much reads twice as much", () => {
  const readers = readersOf([2, 1, 1]);
  const parts = readers.map((_, index) => partOf({ readers, firstGenerations: 0 }, index, 40));
  expect(parts).toEqual([[{ from: 0, end: 20 }], [{ from: 20, end: 30 }], [{ from: 30, end: 40 }]]);
});

test("sharing: the first generations are known before the length is, and the rest follows", () => {
  const readers = readersOf([1, 1]);
  const parts = [40, 3].map((count) => partOf({ readers, firstGenerations: 2 }, 1, count));
  expect(parts).toEqual([
    [
      { from: 2, end: 4 },
      { from: 22, end: 40 },
    ],
    [{ from: 2, end: 3 }],
  ]);
});

test("sharing: a proxy begins with every source symbol of its part", () => {
  const geometry = geometryOf(1000, 100, 4) as Geometry;
  const spans = [
    { from: 0, end: 1 },
    { from: 2, end: 9 },
  ];
  expect(firstOfSpans(geometry, spans, 100)).toEqual([0, 0, 0, 0, 2, 2]);
  expect(firstOfSpans(geometry, spans, 5)).toEqual([0, 0, 0, 0, 2]);
});
