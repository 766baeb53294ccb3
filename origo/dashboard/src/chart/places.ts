/** Proxies' places on a map whose left edge is the meridian of 170° west, and which of them share one name. */
import type { FleetProxy } from "@tributary/contract/schema";

export type PlacedProxy = FleetProxy & { place: NonNullable<FleetProxy["place"]> };

/** Degrees; `aspect`: so much shorter than a degree of latitude is one of longitude. */
export const MAP = { west: -170, east: 190, north: 76, south: -56, aspect: 0.75 } as const;
/** Room that a name and its dot take, CSS pixels. */
const NAME = { width: 64, height: 20 };

/** Degrees east that lie on the map. */
export const longitudeOf = ({ place: { lon } }: PlacedProxy): number => (lon < MAP.west ? lon + 360 : lon);

/** CSS pixels of the map, which keeps its shape in the middle of a drawing of this size. */
export function pxPerDegree(width: number, height: number): { lon: number; lat: number } {
  const lat = Math.min(height / (MAP.north - MAP.south), width / (MAP.aspect * (MAP.east - MAP.west)));
  return { lon: MAP.aspect * lat, lat };
}

/**
 * Proxies whose names would lie on each other, where `px` is CSS pixels a degree. The first of a group is the
 * easternmost, the place of its name.
 */
export function nameGroups(proxies: readonly PlacedProxy[], px: { lon: number; lat: number }): PlacedProxy[][] {
  const groups: PlacedProxy[][] = [];
  for (const proxy of [...proxies].sort((a, b) => longitudeOf(b) - longitudeOf(a))) {
    const near = groups.find(
      ([first]) =>
        (longitudeOf(first!) - longitudeOf(proxy)) * px.lon < NAME.width &&
        Math.abs(first!.place.lat - proxy.place.lat) * px.lat < NAME.height,
    );
    if (near) near.push(proxy);
    else groups.push([proxy]);
  }
  return groups;
}
