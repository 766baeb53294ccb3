/**
 * Classify: the class of an IP address, by the special-purpose registries of IANA (RFC 6890 and its updates). Pure.
 * policy.ts decides which classes a proxy may connect to. The test lists the neighbours just outside each range.
 */
import ipaddr from "ipaddr.js";

export type AddressClass =
  | "public"
  | "unspecified"
  | "loopback"
  | "private"
  | "carrierGradeNat"
  | "linkLocal"
  | "uniqueLocal"
  | "multicast"
  | "broadcast"
  | "documentation"
  | "benchmarking"
  /** An IPv4 address behind a translator or tunnel (6to4, Teredo, SIIT, or NAT64 to a non-public address). */
  | "translated"
  | "reserved"
  /** An address of this machine, or the address under which clients reach it. */
  | "own"
  | "invalid";

type Range<T> = readonly [network: T, prefixBits: number, kind: AddressClass];

/** The first match counts, so a narrow range stands before a wider one that contains it. */
const IPV4 = table4([
  ["0.0.0.0/8", "unspecified"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "carrierGradeNat"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "linkLocal"],
  ["172.16.0.0/12", "private"],
  ["192.0.0.0/24", "reserved"],
  ["192.0.2.0/24", "documentation"],
  ["192.88.99.0/24", "reserved"],
  ["192.168.0.0/16", "private"],
  ["198.18.0.0/15", "benchmarking"],
  ["198.51.100.0/24", "documentation"],
  ["203.0.113.0/24", "documentation"],
  ["224.0.0.0/4", "multicast"],
  ["255.255.255.255/32", "broadcast"],
  ["240.0.0.0/4", "reserved"],
]);

const IPV6 = table6([
  ["::/128", "unspecified"],
  ["::1/128", "loopback"],
  ["::/96", "translated"],
  ["::ffff:0:0:0/96", "translated"],
  ["64:ff9b:1::/48", "translated"],
  ["2001::/32", "translated"],
  ["2001::/23", "reserved"],
  ["2001:db8::/32", "documentation"],
  ["2002::/16", "translated"],
  ["3fff::/20", "documentation"],
  ["2000::/3", "public"],
  ["fc00::/7", "uniqueLocal"],
  ["fe80::/10", "linkLocal"],
  ["ff00::/8", "multicast"],
]);

const MAPPED = ipaddr.IPv6.parseCIDR("::ffff:0:0/96");
const NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");

/**
 * The class of `address`: IPv4 in four parts or one number, IPv6 as in RFC 4291, otherwise `invalid`. `own` holds the
 * canonical addresses (`canonicalAddress`) of this machine. An IPv4-mapped address has the class of its IPv4 address.
 */
export function classifyAddress(address: string, own: ReadonlySet<string> = new Set()): AddressClass {
  const parsed = parse(address);
  if (!parsed) return "invalid";
  const kind = parsed.kind() === "ipv4" ? classify4(parsed as ipaddr.IPv4) : classify6(parsed as ipaddr.IPv6);
  return kind === "public" && own.has(canonicalAddress(address)!) ? "own" : kind;
}

/** The one spelling of an address; IPv4-mapped addresses become IPv4. Undefined when the text is not an address. */
export function canonicalAddress(address: string): string | undefined {
  const parsed = parse(address);
  if (!parsed) return undefined;
  if (parsed.kind() === "ipv6" && (parsed as ipaddr.IPv6).match(MAPPED))
    return embedded(parsed as ipaddr.IPv6).toString();
  return parsed.toString();
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  return ipaddr.isValid(address) ? ipaddr.parse(address) : undefined;
}

function classify4(address: ipaddr.IPv4): AddressClass {
  return IPV4.find(([network, bits]) => address.match(network, bits))?.[2] ?? "public";
}

function classify6(address: ipaddr.IPv6): AddressClass {
  if (address.match(MAPPED)) return classify4(embedded(address));
  if (address.match(NAT64)) return classify4(embedded(address)) === "public" ? "public" : "translated";
  return IPV6.find(([network, bits]) => address.match(network, bits))?.[2] ?? "reserved";
}

/** The IPv4 address in the last 32 bits. */
function embedded(address: ipaddr.IPv6): ipaddr.IPv4 {
  return new ipaddr.IPv4(address.toByteArray().slice(12));
}

function table4(rows: [cidr: string, kind: AddressClass][]): Range<ipaddr.IPv4>[] {
  return rows.map(([cidr, kind]) => [...ipaddr.IPv4.parseCIDR(cidr), kind] as const);
}

function table6(rows: [cidr: string, kind: AddressClass][]): Range<ipaddr.IPv6>[] {
  return rows.map(([cidr, kind]) => [...ipaddr.IPv6.parseCIDR(cidr), kind] as const);
}
