/**
 * Geo: where on Earth an address roughly is, from a database in MMDB format on disk (GEO_DB; none comes with Origo).
 * Nothing leaves this process, and places are rounded to whole degrees (about 100 km) before anyone sees them.
 */
import { readFile } from "node:fs/promises";
import { Reader, type CityResponse } from "mmdb-lib";
import type { Place } from "@tributary/contract/schema";

export type PlaceOf = (address: string) => Place | undefined;

/** Throws when the file is not there or is no MMDB. Without a path, no address has a place. */
export async function openGeo(path: string | undefined): Promise<PlaceOf> {
  if (path === undefined) return () => undefined;
  const reader = new Reader<CityResponse>(await readFile(path));
  return (address) => {
    try {
      const location = reader.get(address.replace(/^::ffff:/, ""))?.location;
      return location && { lat: Math.round(location.latitude), lon: Math.round(location.longitude) };
    } catch {
      // Not an address that the database can be asked for: IPv6 in one of IPv4 only.
      return undefined;
    }
  };
}

const EARTH_KM = 6371;

/** Along the great circle (haversine). */
export function distanceKm(a: Place, b: Place): number {
  const rad = Math.PI / 180;
  const h =
    Math.sin(((b.lat - a.lat) * rad) / 2) ** 2 +
    Math.cos(a.lat * rad) * Math.cos(b.lat * rad) * Math.sin(((b.lon - a.lon) * rad) / 2) ** 2;
  return 2 * EARTH_KM * Math.asin(Math.min(1, Math.sqrt(h)));
}
