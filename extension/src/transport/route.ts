/** Route: how an answer came to the proxies. Pure. */
import { HOPS_HEADER, parseHops, type Hop, type ResponseHead } from "@tributary/contract";

/** How an answer came: the redirects, and the address that answered in the end. */
export interface Route {
  hops: readonly Hop[];
  answered: URL;
}

/** undefined if the proxy does not tell the whole route, for example because an address is too long. */
export function routeOf({ headers }: ResponseHead, target: URL): Route | undefined {
  const { location } = headers;
  const hops = parseHops(headers[HOPS_HEADER]);
  if (hops?.length === 0 && location === undefined) return { hops, answered: target };
  if (hops?.[0]?.origin !== target.origin || location === undefined || !URL.canParse(location)) return undefined;
  const answered = new URL(location);
  answered.hash = "";
  return { hops, answered };
}

export function isWithin({ hops, answered }: Route, origins: readonly string[]): boolean {
  return [...hops, answered].every(({ origin }) => origins.includes(origin));
}
