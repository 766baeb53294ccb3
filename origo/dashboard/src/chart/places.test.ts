import { longitudeOf, nameGroups, type PlacedProxy } from "./places";

const at = (name: string, lat: number, lon: number): PlacedProxy => ({ name, place: { lat, lon } }) as PlacedProxy;
const WIDE = { lon: 2.1, lat: 2.9 };
const namesOf = (proxies: readonly PlacedProxy[], pxPerDegree = WIDE): string[][] =>
  nameGroups(proxies, pxPerDegree).map((group) => group.map(({ name }) => name));

const London = at("London", 51.5, -0.1);
const Frankfurt = at("Frankfurt", 50.1, 8.7);
const Nairobi = at("Nairobi", -1.3, 36.8);

test("places: names that would lie on each other are one group, the easternmost first; others stand alone", () => {
  expect(namesOf([London, Nairobi, Frankfurt])).toEqual([["Nairobi"], ["Frankfurt", "London"]]);
});

test.each<[string, PlacedProxy, boolean]>([
  ["the same place", at("b", 51.5, -0.1), true],
  ["a name's height north of it", at("b", 51.5 + 20 / 2.9 + 0.01, -0.1), false],
  ["nearly so far north", at("b", 51.5 + 20 / 2.9 - 0.01, -0.1), true],
  ["a name's width west of it", at("b", 51.5, -0.1 - 64 / 2.1 - 0.01), false],
  ["nearly so far west", at("b", 51.5, -0.1 - 64 / 2.1 + 0.01), true],
])("places: %s", (_name, other, together) => expect(nameGroups([London, other], WIDE)).toHaveLength(together ? 1 : 2));

test("places: on a small map more names are one", () => {
  const Helsinki = at("Helsinki", 60.2, 24.9);
  expect([
    namesOf([Frankfurt, Helsinki]).length,
    namesOf([Frankfurt, Helsinki], { lon: 0.9, lat: 1.2 }).length,
  ]).toEqual([2, 1]);
});

test("places: beyond the map's left edge is its right end", () => {
  expect([at("Tonga", -21, -175), at("Honolulu", 21, -158), at("Suva", -18, 178)].map(longitudeOf)).toEqual([
    185, -158, 178,
  ]);
});
