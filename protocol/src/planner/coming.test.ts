/** Tests which packets are on their way from one proxy: docs/spec/protocol.md §8.7. */
import { Coming } from "./coming";

function comingOf(order: number[], first: number): Coming {
  const coming = new Coming();
  coming.begin(order, first);
  for (let sequence = first; sequence < order.length; sequence++) coming.setTime(sequence, 10 * sequence);
  return coming;
}

/** The times of a generation's packets, in order. */
function timesOf(coming: Coming, generation: number): number[] {
  const times = [];
  for (coming.select(generation); coming.atMs < Infinity; coming.take()) times.push(coming.atMs);
  return times;
}

test("coming: gives one generation at a time, in the order of arrival, as often as it is asked", () => {
  const coming = comingOf([0, 0, 0, 1, 0, 1, 2], 2);
  expect(timesOf(coming, 0)).toEqual([20, 40]);
  expect(timesOf(coming, 1)).toEqual([30, 50]);
  expect(timesOf(coming, 0)).toEqual([20, 40]);
  expect(timesOf(coming, 3)).toEqual([]);
});

test("coming: holds the packets ordered before it began and no later ones", () => {
  const order = [0, 0];
  const coming = comingOf(order, 1);
  order.push(0);
  expect(timesOf(coming, 0)).toEqual([10]);
});

test("coming: is empty once cleared, and when more has come than was ordered", () => {
  const coming = comingOf([0, 0], 0);
  coming.clear();
  expect(timesOf(coming, 0)).toEqual([]);
  expect(timesOf(comingOf([0], 5), 0)).toEqual([]);
});

test("coming: grows when more packets are on their way than before", () => {
  expect(
    timesOf(
      comingOf(
        Array.from({ length: 5000 }, () => 7),
        1000,
      ),
      7,
    ),
  ).toHaveLength(4000);
});
