/** Tests where proxies lie on the map, and which of them share a label. */
import { longitudeOf, nameGroups, type PlacedProxy } from "./places";

const at = (name: string, lat: number, lon: number): PlacedProxy => ({ name, place: { lat, lon } }) as PlacedProxy;
const WIDE = { lon: 2.1, lat: 2.9 };
const namesOf = (proxies: readonly PlacedProxy[], pxPerDegree = WIDE): string[][] =>
  nameGroups(proxies, pxPerDegree).map((group) => group.map(({ name }) => name));

const London = at("London", 51.5, -0.1);
const Frankfurt = at("Frankfurt", 50.1, 8.7);
const Nairobi = at("Nairobi", -1.3, 36.8);

test("places: proxies whose names would overlap form one group, the easternmost first", () => {
  expect(namesOf([London, Nairobi, Frankfurt])).toEqual([["Nairobi"], ["Frankfurt", "London"]]);
});

test.each<[string, PlacedProxy, boolean]>([
  ["a proxy at the same place is in the group", at("b", 51.5, -0.1), true],
  ["a proxy just above the height of a name to the north is not", at("b", 51.5 + 20 / 2.9 + 0.01, -0.1), false],
  ["a proxy just below the height of a name to the north is", at("b", 51.5 + 20 / 2.9 - 0.01, -0.1), true],
  ["a proxy just above the width of a name to the west is not", at("b", 51.5, -0.1 - 64 / 2.1 - 0.01), false],
  ["a proxy just below the width of a name to the west is", at("b", 51.5, -0.1 - 64 / 2.1 + 0.01), true],
])("places: %s", (_name, other, together) => expect(nameGroups([London, other], WIDE)).toHaveLength(together ? 1 : 2));

test("places: a smaller map has larger groups", () => {
  const Helsinki = at("Helsinki", 60.2, 24.9);
  expect([
    namesOf([Frankfurt, Helsinki]).length,
    namesOf([Frankfurt, Helsinki], { lon: 0.9, lat: 1.2 }).length,
  ]).toEqual([2, 1]);
});

test("places: a place beyond the left edge of the map is at its right end", () => {
  expect([at("Tonga", -21, -175), at("Honolulu", 21, -158), at("Suva", -18, 178)].map(longitudeOf)).toEqual([
    185, -158, 178,
  ]);
});
