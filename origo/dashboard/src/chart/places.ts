/** Proxies' places on a map whose left edge is the meridian of 170° west, and which of them share one name. */
import type { FleetProxy } from "../../../src/schema";

export type PlacedProxy = FleetProxy & { place: NonNullable<FleetProxy["place"]> };

export const MAP = { west: -170, east: 190, north: 76, south: -56 } as const;
/** Room that a name and its dot take, CSS pixels. */
const NAME = { width: 64, height: 20 };

/** Degrees east that lie on the map. */
export const longitudeOf = ({ place: { lon } }: PlacedProxy): number => (lon < MAP.west ? lon + 360 : lon);

/**
 * Proxies whose names would lie on each other, where `pxPerDegree` are CSS pixels of longitude and of latitude. The first of a
 * group is the easternmost, the place of its name.
 */
export function nameGroups(proxies: readonly PlacedProxy[], pxPerDegree: { lon: number; lat: number }): PlacedProxy[][] {
  const groups: PlacedProxy[][] = [];
  for (const proxy of [...proxies].sort((a, b) => longitudeOf(b) - longitudeOf(a))) {
    const near = groups.find(([first]) => first !== undefined
      && (longitudeOf(first) - longitudeOf(proxy)) * pxPerDegree.lon < NAME.width && Math.abs(first.place.lat - proxy.place.lat) * pxPerDegree.lat < NAME.height);
    if (near) near.push(proxy);
    else groups.push([proxy]);
  }
  return groups;
}
