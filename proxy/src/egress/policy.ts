/**
 * Policy: which URLs and which addresses this proxy may fetch from. Pure decisions on text, without DNS and sockets.
 * fetch.ts resolves names, asks here about every address, and connects only to accepted ones.
 */
import type { Rejection } from "@tributary/contract";
import { isIP } from "node:net";
import { LIMITS } from "@tributary/protocol";
import { classifyAddress, type AddressClass } from "./classify";

/** `host` is `*` or canonical: as in a URL, but IPv6 without brackets. Without a port, 80 and 443 are meant. */
export interface HostRule {
  host: string;
  port?: number;
}

export interface EgressPolicy {
  /** Hosts and their subdomains. `*` means every host that has only public addresses. */
  allow: readonly HostRule[];
  /** Exactly these hosts are allowed even if they resolve to a private address. */
  allowPrivate: readonly HostRule[];
  /** The canonical addresses of this machine. */
  ownAddresses: ReadonlySet<string>;
}

const DEFAULT_PORTS = [80, 443];

/** The classes that ALLOW_PRIVATE_HOSTS can open. Link-local (cloud metadata) and all others stay closed. */
const PRIVATE_CLASSES: ReadonlySet<AddressClass> = new Set([
  "loopback",
  "private",
  "uniqueLocal",
  "carrierGradeNat",
  "documentation",
  "benchmarking",
  "own",
]);

/** Reads `HOST`, `HOST:PORT`, `[IPV6]:PORT` or `*`. Undefined when the text is something else. */
export function parseHostRule(text: string): HostRule | undefined {
  if (text === "*") return { host: "*" };
  const bare = isIP(text) === 6 ? `[${text}]` : text;
  const match = /^([^:/?#@\s]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?$/.exec(bare);
  if (!match || !URL.canParse(`http://${match[1]}`)) return undefined;
  const host = hostOf(new URL(`http://${match[1]}`));
  if (match[2] === undefined) return { host };
  const port = Number(match[2]);
  return port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

/** The URL in canonical form and without its fragment, or a rejection. Nothing is resolved yet. */
export function vetUrl(text: string, policy: EgressPolicy): URL | Rejection {
  const urlBytes = Buffer.byteLength(text);
  if (urlBytes > LIMITS.urlBytesMax) {
    const message = `The URL is too long: got ${urlBytes} bytes, limit ${LIMITS.urlBytesMax}.`;
    return { kind: "urlTooLong", message, got: urlBytes, limit: LIMITS.urlBytesMax };
  }
  if (!URL.canParse(text))
    return { kind: "badUrl", message: "The URL cannot be parsed: give an absolute http or https URL." };
  const url = new URL(text);
  url.hash = "";
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return { kind: "badUrl", message: `The URL must be http or https: got ${url.protocol.slice(0, -1)}.` };
  }
  if (url.username !== "" || url.password !== "") {
    return { kind: "badUrl", message: "The URL must not hold a user name or password." };
  }
  if (matches(policy.allow, url, true) || matches(policy.allowPrivate, url, false)) return url;
  return refusal(
    `This proxy does not fetch from ${hostOf(url)}, port ${portOf(url)}: ` +
      "its operator has not allowed it (ALLOW_HOSTS).",
  );
}

/** Refuses the URL when this proxy must not connect to one of the addresses of its host. */
export function vetAddresses(url: URL, addresses: readonly string[], policy: EgressPolicy): Rejection | undefined {
  const mayBePrivate = matches(policy.allowPrivate, url, false);
  const listed = matches(policy.allow, url, true);
  for (const address of addresses) {
    const kind = classifyAddress(address, policy.ownAddresses);
    if (kind === "public" && (listed || mayBePrivate)) continue;
    if (mayBePrivate && PRIVATE_CLASSES.has(kind)) continue;
    return refusal(`${hostOf(url)} resolves to an address that this proxy does not dial (${kind}).`);
  }
  return undefined;
}

export function refusal(message: string): Rejection {
  return { kind: "egressRefused", message };
}

/** The host of a URL, without brackets and without the final dot of the root label. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

export function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}

function matches(rules: readonly HostRule[], url: URL, subdomains: boolean): boolean {
  const host = hostOf(url);
  const port = portOf(url);
  return rules.some((rule) => {
    if (rule.port === undefined ? !DEFAULT_PORTS.includes(port) : rule.port !== port) return false;
    if (rule.host === "*" || rule.host === host) return true;
    return subdomains && isIP(host) === 0 && isIP(rule.host) === 0 && host.endsWith(`.${rule.host}`);
  });
}
