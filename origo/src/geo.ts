/**
 * Geo: finds where on Earth an address roughly is, in a local database in MMDB format (GEO_DB; Origo brings none).
 * Nothing leaves this process. Places are rounded to whole degrees (about 100 km) before anyone sees them.
 */
import { readFile } from "node:fs/promises";
import { Reader, type CityResponse } from "mmdb-lib";
import type { Place } from "@tributary/contract/schema";

export type PlaceOf = (address: string) => Place | undefined;

/** Throws when the file is missing or is not in MMDB format. Without a path, no address has a place. */
export async function openGeo(path: string | undefined): Promise<PlaceOf> {
  if (path === undefined) return () => undefined;
  const reader = await readFile(path)
    .then((file) => new Reader<CityResponse>(file))
    .catch((error: Error) => {
      throw new Error(`GEO_DB must be a file in MMDB format: ${error.message}`);
    });
  return (address) => {
    try {
      const location = reader.get(address.replace(/^::ffff:/, ""))?.location;
      return location && { lat: Math.round(location.latitude), lon: Math.round(location.longitude) };
    } catch {
      // The database cannot look up this address, for example an IPv6 address in a database of IPv4 addresses.
      return undefined;
    }
  };
}

const EARTH_KM = 6371;

/** The distance along the great circle (haversine formula). */
export function distanceKm(a: Place, b: Place): number {
  const rad = Math.PI / 180;
  const h =
    Math.sin(((b.lat - a.lat) * rad) / 2) ** 2 +
    Math.cos(a.lat * rad) * Math.cos(b.lat * rad) * Math.sin(((b.lon - a.lon) * rad) / 2) ** 2;
  return 2 * EARTH_KM * Math.asin(Math.min(1, Math.sqrt(h)));
}
