/** Network: the network that an address belongs to, by the first bits of the address. Pure. */

/** `198.51.100.0/24` or `2001:db8:7::/48`. An IPv4 address that is written as IPv6 gives an IPv4 network. */
export function networkOf(address: string): string {
  const four = /(\d+\.\d+\.\d+)\.\d+$/.exec(address)?.[1];
  if (four !== undefined) return `${four}.0/24`;
  return `${groupsOf(address, 3)}::/48`;
}

/**
 * Who counts as one for a limit: an IPv4 address, or the 64 bits of an IPv6 network, in which one machine may take any
 * address.
 */
export function limitKeyOf(address: string): string {
  const four = /(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1];
  return four ?? groupsOf(address, 4);
}

/** The first groups of an IPv6 address, without leading zeros. */
function groupsOf(address: string, count: number): string {
  const [before = [], after = []] = address.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill("0");
  return [...before, ...zeros, ...after]
    .slice(0, count)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
