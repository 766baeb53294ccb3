/**
 * Keeps direct requests away from the machines of the operator's own network, when strangers can ask for them. The
 * address of each connection is checked, so a name cannot lead there, nor a redirect.
 */
import { lookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { DownloadError } from "./errors";

let allowedHosts: ReadonlySet<string> | undefined;

/** From now on only public addresses and these hosts are asked. IPv6 addresses may have brackets. */
export function guardOrigins(privateHosts: readonly string[]): void {
  allowedHosts = new Set(privateHosts.map(plain));
}

export function isPublicAddress(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === "unicast";
}

/** For connections: looks a name up, and fails if it leads to an address that may not be asked. */
export const lookupGuarded: LookupFunction = (host, options, callback) => {
  lookup(host, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    const fault = error ?? addresses.map(({ address }) => faultOf(host, address)).find((each) => each !== undefined);
    const [first] = addresses ?? [];
    if (fault || !first) callback(fault ?? new Error(`${host} has no address`), []);
    else if (options.all) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

/** Why a host that is an address may not be asked. Undefined for a name: its addresses are looked up later. */
export function faultOfAddress(hostname: string): DownloadError | undefined {
  const host = plain(hostname);
  return isIP(host) === 0 ? undefined : faultOf(host, host);
}

function faultOf(host: string, address: string): DownloadError | undefined {
  if (!allowedHosts || allowedHosts.has(plain(host)) || isPublicAddress(address)) return undefined;
  const where = host === address ? address : `${host}, which is ${address}`;
  return new DownloadError(
    "egressRefused",
    `The address belongs to a private network: got ${where}. Allow it with --private-host ${host}.`,
  );
}

function plain(host: string): string {
  return host.replace(/^\[|\]$/g, "").toLowerCase();
}
