/** Order statistics of a bench's samples. */

/** Linear between neighbours (type 7 of Hyndman and Fan 1996). `share` is 0..1. NaN if there are no values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low === undefined || high === undefined ? NaN : low + (high - low) * (at - Math.floor(at));
}

/** The smallest of the values that at least `share` of them do not exceed. NaN if there are no values. */
export function rankedQuantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN;
}

export interface Quartiles {
  q1: number;
  median: number;
  q3: number;
}

export const quartilesOf = (values: readonly number[]): Quartiles => ({
  q1: quantile(values, 0.25),
  median: median(values),
  q3: quantile(values, 0.75),
});

export const median = (values: readonly number[]): number => quantile(values, 0.5);

export const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);

/** Groups in the order in which their keys come first. */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, [Item, ...Item[]]> {
  const groups = new Map<Key, [Item, ...Item[]]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}
