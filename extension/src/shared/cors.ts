/**
 * Cors: which answers, and which of their headers, a page of a given origin may read.
 * The rule is the browser's own rule for a request without credentials, so a page reads nothing through the transport
 * that it could not read directly. Pure.
 */

import { HOPS_HEADER, type Hop, type ResponseHead } from "@tributary/contract";

/** Response headers that any page may read (Fetch standard, CORS-safelisted response-header names). */
const SAFELISTED = new Set([
  "cache-control",
  "content-language",
  "content-length",
  "content-type",
  "expires",
  "last-modified",
  "pragma",
]);
/** Headers that no page may read, and those that a proxy adds. */
const HIDDEN = new Set(["set-cookie", "set-cookie2", "location", HOPS_HEADER]);

export type Exposure = { type: "basic" | "cors"; headers: ResponseHead["headers"] };

/**
 * What a page at `pageOrigin` may see of an answer from `url` with `headers` (names in lower case), to which `hops` led
 * in order. If the result is `undefined`, the page may not read the answer, and the browser must report that itself.
 */
export function exposeTo(
  pageOrigin: string,
  url: URL,
  headers: Readonly<Record<string, string>>,
  hops: readonly Hop[] = [],
): Exposure | undefined {
  const allowedOrigin = headers["access-control-allow-origin"] ?? null;
  const type = taintingOf(pageOrigin, [...hops, { origin: url.origin, allowedOrigin }]);
  if (type === undefined) return undefined;
  const all = Object.entries(headers)
    .map(([name, value]): [string, string] => [name.toLowerCase(), value])
    .filter(([name]) => !HIDDEN.has(name));
  if (type === "basic") return { type, headers: Object.fromEntries(all) };
  const exposed = new Set(
    (headers["access-control-expose-headers"] ?? "").split(",").map((name) => name.trim().toLowerCase()),
  );
  const everything = exposed.has("*");
  const readable = all.filter(([name]) => everything || SAFELISTED.has(name) || exposed.has(name));
  return { type, headers: Object.fromEntries(readable) };
}

/**
 * The response tainting after all hops; undefined if one of them does not share with the page (Fetch standard, HTTP
 * fetch and CORS check). After a hop from another origin to a third one, the request counts as of origin `null`.
 */
function taintingOf(
  pageOrigin: string,
  hops: readonly Pick<Hop, "origin" | "allowedOrigin">[],
): Exposure["type"] | undefined {
  let type: Exposure["type"] = "basic";
  let requestOrigin = pageOrigin;
  let lastOrigin = pageOrigin;
  for (const { origin, allowedOrigin } of hops) {
    if (origin !== pageOrigin) type = "cors";
    if (origin !== lastOrigin && lastOrigin !== pageOrigin) requestOrigin = "null";
    const allowed = allowedOrigin?.trim();
    if (type === "cors" && allowed !== "*" && (allowed !== requestOrigin || pageOrigin === "null")) return undefined;
    lastOrigin = origin;
  }
  return type;
}
