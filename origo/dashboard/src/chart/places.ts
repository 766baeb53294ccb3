/** Places: where proxies lie on a map that begins at 170° west, and which of them share one label. Pure. */
import type { FleetProxy } from "@tributary/contract/schema";

export type PlacedProxy = FleetProxy & { place: NonNullable<FleetProxy["place"]> };

/**
 * The edges of the map in degrees. `aspect` is the width of a degree of longitude over the height of one of latitude.
 */
export const MAP = { west: -170, east: 190, north: 76, south: -56, aspect: 0.75 } as const;
/** The room that a name and its dot take, in CSS pixels. */
const NAME = { width: 64, height: 20 };

/** The longitude in degrees east, moved by 360 when it would lie left of the map. */
export const longitudeOf = ({ place: { lon } }: PlacedProxy): number => (lon < MAP.west ? lon + 360 : lon);

/** CSS pixels per degree. The map keeps its shape and lies in the middle of a chart of this size. */
export function pxPerDegree(width: number, height: number): { lon: number; lat: number } {
  const lat = Math.min(height / (MAP.north - MAP.south), width / (MAP.aspect * (MAP.east - MAP.west)));
  return { lon: MAP.aspect * lat, lat };
}

/**
 * Groups the proxies whose names would overlap. `px` gives CSS pixels per degree. The first proxy of a group is the
 * easternmost one; the label stands there.
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
