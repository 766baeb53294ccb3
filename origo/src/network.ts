/** The network that an address belongs to, as far as its first bits tell. Pure. */

/** `198.51.100.0/24`, `2001:db8:7::/48`; of an IPv4 address written as IPv6, IPv4's. */
export function networkOf(address: string): string {
  const four = /(\d+\.\d+\.\d+)\.\d+$/.exec(address)?.[1];
  if (four !== undefined) return `${four}.0/24`;
  const [before = [], after = []] = address.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill("0");
  return `${[...before, ...zeros, ...after]
    .slice(0, 3)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/48`;
}
