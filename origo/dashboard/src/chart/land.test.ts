/** Tests the land of the map: that known places are on it, and others are not. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

type Ring = [longitude: number, latitude: number][];
const load = createRequire(__filename);
const landLoader = load(path.resolve(__dirname, "../../land-loader.js")) as (source: string) => string;
const land = JSON.parse(landLoader(readFileSync(load.resolve("world-atlas/land-110m.json"), "utf8"))) as {
  features: [{ geometry: { coordinates: Ring[][] } }];
};
const rings = land.features[0].geometry.coordinates.flat();

/** Uses the even-odd rule, by which the map is filled. */
function isLand(latitude: number, longitude: number): boolean {
  const crossings = rings.map(
    (ring) =>
      ring.filter(([x, y], index) => {
        const [nextX, nextY] = ring[(index + 1) % ring.length] ?? [x, y];
        return y > latitude !== nextY > latitude && longitude < x + ((latitude - y) / (nextY - y)) * (nextX - x);
      }).length,
  );
  return crossings.reduce((sum, count) => sum + count, 0) % 2 === 1;
}

test.each([
  ["Budapest", 47.5, 19],
  ["Nairobi", -1.3, 36.8],
  ["Delhi", 28.6, 77.2],
  ["Yakutsk", 62, 129.7],
  ["Anadyr, beyond the 180th meridian", 66.5, 182],
  ["Denver", 39.7, -105],
  ["Brasilia", -15.8, -47.9],
  ["Alice Springs", -23.7, 133.9],
])("%s is on the map's land", (_name, latitude, longitude) => expect(isLand(latitude, longitude)).toBe(true));

test.each([
  ["the Atlantic", 30, -40],
  ["the Pacific", 0, -150],
  ["the Indian Ocean", -20, 80],
  ["the Caspian Sea", 41.5, 51],
])("%s is not on the map's land", (_name, latitude, longitude) => expect(isLand(latitude, longitude)).toBe(false));

test("the land fits on a map that goes once around the Earth", () => {
  const longitudes = rings.flat().map(([longitude]) => longitude);
  expect(Math.min(...longitudes)).toBeGreaterThanOrEqual(-190);
  expect(Math.max(...longitudes)).toBeLessThanOrEqual(200);
});
