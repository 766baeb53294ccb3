/** The fluid model of replication: fair rates by hand, and the order of the schemes on the published topologies. */
import { graphOf } from "@tributary/multicast";
import { loadHighs } from "@tributary/multicast/highs";
import { B4, INTERNET2 } from "@tributary/multicast/topologies";
import { fairRates, flowOver, restOf } from "./fluid";
import { replicate, throughputs } from "./main";
import { PUBLISHED, TOPOLOGY_NAMES } from "./published";

test("flows share each link fairly, and one that is limited elsewhere leaves the rest to the others", () => {
  const flows = [flowOver([0]), flowOver([0, 1]), flowOver([1]), flowOver([2, 2])];
  const rates = fairRates(flows, [10, 4, 6]);
  [8, 2, 2, 3].forEach((rate, flow) => expect(rates[flow]).toBeCloseTo(rate, 9));
  restOf(flows, rates, [10, 5, 6]).forEach((rest, link) => expect(rest).toBeCloseTo([0, 1, 0][link]!, 9));
});

test("a link without capacity stops its flows alone", () => {
  expect(fairRates([flowOver([0]), flowOver([1])], [0, 3])).toEqual([0, 3]);
});

test("one transfer to three sites: coding and packing both reach the capacity, on both topologies", async () => {
  const solve = await loadHighs();
  for (const topology of [B4, INTERNET2]) {
    const point = { transfers: 1, destinations: 3, load: 0 };
    const rates = throughputs(graphOf(topology), point, 10, 1, solve);
    expect(rates.packing).toBeCloseTo(rates.coded, 5);
    expect(rates.steiner).toBe(1);
    expect(rates.single).toBeLessThan(rates.multi);
  }
});

test("the published points are the paper's, and the model has their order: single path, Steiner, coded", async () => {
  const solve = await loadHighs();
  for (const name of TOPOLOGY_NAMES) {
    const row = PUBLISHED[name][8].find(({ load }) => load === 0.1)!;
    expect(PUBLISHED[name][9]).toContainEqual(row);
    expect(PUBLISHED[name][10]).toContainEqual(row);
    const rates = throughputs(graphOf(name === "B4" ? B4 : INTERNET2), row, 10, 1, solve);
    for (const { single, steiner, filled } of [rates, { ...row, filled: row.coded }]) {
      expect(single).toBeLessThan(steiner);
      expect(steiner).toBeLessThan(filled);
    }
  }
});

test.each([
  [["--figure", "7"], "--figure must be one of 8, 9, 10, got 7"],
  [["--figure", "8", "--topology", "Abilene"], "--topology must be one of B4, Internet2, got Abilene"],
  [["--figure", "8", "--draws", "0"], "--draws must be a whole number from 1 to 10000, got 0"],
  [["--figure", "8", "--seed", "x"], "--seed must be a whole number from 0, got x"],
])("%j is refused", async (words, message) => {
  const said = jest.spyOn(console, "error").mockImplementation(() => undefined);
  expect(await replicate(words)).toBe(2);
  expect(said.mock.calls[0]![0]).toContain(message);
  said.mockRestore();
});
