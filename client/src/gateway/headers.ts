/** Headers on their way through the gateway: what an origin gets of a player's request, and a player of the answer. */
import type { IncomingHttpHeaders } from "node:http";
import { formatOfType } from "../video/recognise";
import { gatewayAddress, isHttp, parseMirrored, resolved } from "./addresses";

/** RFC 9110 §7.6.1, and what the gateway sets itself. */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
const NOT_SENT = new Set([...HOP_BY_HOP, "host", "accept-encoding", "content-length", "expect", "origin"]);
/** Headers of an answer that are for the origin's own host, or that let web pages in. */
const NOT_ANSWERED = new Set([
  ...HOP_BY_HOP,
  "alt-svc",
  "clear-site-data",
  "content-security-policy",
  "cross-origin-resource-policy",
  "link",
  "nel",
  "refresh",
  "report-to",
  "reporting-endpoints",
  "service-worker-allowed",
  "set-cookie",
  "strict-transport-security",
  "timing-allow-origin",
]);
/** What the player learns of an answer that came through proxies. The others could be meant for a proxy. */
const ANSWERED_BY_PROXIES = [
  "accept-ranges",
  "cache-control",
  "content-disposition",
  "content-range",
  "content-type",
  "etag",
  "expires",
  "last-modified",
];
/** A request with any other header is for the origin alone. */
const HARMLESS = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "connection",
  "host",
  "icy-metadata",
  "keep-alive",
  "pragma",
  "priority",
  "range",
  "te",
  "user-agent",
]);

/**
 * The first header of the request that keeps it away from the proxies, or undefined. If-Match and If-Range do not if
 * `mayDepend` is true.
 */
export function identifyingHeader(headers: IncomingHttpHeaders, mayDepend: boolean): string | undefined {
  const isHarmless = (name: string): boolean =>
    HARMLESS.has(name) || name.startsWith("sec-") || (mayDepend && (name === "if-match" || name === "if-range"));
  return Object.keys(headers).find((name) => !isHarmless(name));
}

/** The headers for the origin. `gateway` is the gateway's own address. */
export function headersForOrigin(headers: IncomingHttpHeaders, gateway: string): Record<string, string> {
  const named = new Set((headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase()));
  const kept = Object.entries(headers).filter(
    ([name]) => !NOT_SENT.has(name) && !named.has(name) && !name.startsWith("sec-"),
  );
  const sent = Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
  if (sent.referer !== undefined) {
    const referer = originalAddress(sent.referer, gateway);
    if (referer === undefined) delete sent.referer;
    else sent.referer = referer;
  }
  return sent;
}

/** The origin's address for an address of the gateway. Others stay. Undefined if the gateway serves no origin there. */
function originalAddress(address: string, gateway: string): string | undefined {
  if (!address.startsWith(`${gateway}/`)) return address;
  const url = parseMirrored(address.slice(gateway.length));
  return url instanceof URL ? url.href : undefined;
}

/** The headers of the origin's answer for the player. */
export function headersForPlayer(answer: Headers, url: URL, gateway: string): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of answer) {
    if (NOT_ANSWERED.has(name) || name.startsWith("access-control-")) continue;
    headers[name] = value;
  }
  for (const name of ["location", "content-location"]) {
    const target = resolved(answer.get(name) ?? "", url);
    if (answer.has(name) && target && isHttp(target)) headers[name] = gatewayAddress(target, gateway);
  }
  const cookies = answer.getSetCookie().map((cookie) => mirroredCookie(cookie, url, gateway));
  if (cookies.length > 0) headers["set-cookie"] = cookies;
  return { ...headers, ...safety(answer.get("content-type")) };
}

export function headersByProxies(head: Record<string, string>): Record<string, string> {
  const kept = ANSWERED_BY_PROXIES.filter((name) => head[name] !== undefined).map((name) => [name, head[name]!]);
  return { ...(Object.fromEntries(kept) as Record<string, string>), ...safety(head["content-type"] ?? null) };
}

/** What keeps an answer from running as a page of the gateway's own origin, and other pages from using it. */
export function safety(type: string | null): Record<string, string> {
  const always = { "x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin" };
  return isMedia(type) ? always : { ...always, "content-security-policy": "sandbox; default-src 'none'" };
}

export function isMedia(type: string | null): boolean {
  return /^(?:video|audio)\//i.test(type ?? "") && formatOfType(type) === undefined;
}

/**
 * The cookie for the gateway: its path is the origin's behind the host, so the player sends it back for that host only.
 * Loopback has no TLS, so the cookie cannot be `Secure`.
 */
function mirroredCookie(cookie: string, url: URL, gateway: string): string {
  const [pair = "", ...attributes] = cookie.split(";");
  const prefix = `${new URL(gateway).pathname.replace(/\/$/, "")}/${url.protocol.slice(0, -1)}/${url.host}`;
  const kept = attributes
    .filter((attribute) => !/^\s*(?:domain|secure|samesite|partitioned)\s*(?:=|$)/i.test(attribute))
    .map((attribute) =>
      attribute.replace(/^(\s*path\s*=\s*)(\/.*)$/i, (_whole, name, path) => `${name}${prefix}${path}`),
    );
  return [pair, ...kept].join(";");
}
