/**
 * Fetch: the page's `fetch`, with the transport in front of it for media requests. A request that the transport cannot
 * repeat exactly (another method, credentials, unusual headers, `no-cors`, integrity) stays with the native function.
 */
import type { CacheMode } from "@tributary/contract";
import type { MediaRequest } from "../shared/carry";
import { carriedHeaders, isManifestUrl, mediaUrl } from "../shared/rules";
import type { Link } from "./link";
import { natives } from "./natives";
import type { Permits } from "./permits";
import { wrapFunction } from "./wrap";

/** The modes of `fetch` that the proxies can follow. Only the browser itself can answer the others from its cache. */
const CACHE_MODES: Partial<Record<RequestCache, CacheMode>> = {
  default: "default",
  "no-cache": "no-cache",
  reload: "no-cache",
  "no-store": "no-store",
};

interface Candidate extends MediaRequest {
  /** A copy that the browser made. The page may change what it passed while the request waits. */
  request: Request;
}

/** `window.fetch` with the transport in front of it. */
export function patchFetch(link: Link, permits: Permits): typeof fetch {
  return wrapFunction(window.fetch, (target, receiver, args) => {
    const candidate = link.isNative ? null : candidateOf(args, link);
    if (candidate === null) return natives.apply(target, receiver, args);
    const { request, ...wanted } = candidate;
    const carrier = permits.allows(wanted.url) ? link.carrier : null;
    if (carrier !== null)
      return carrier.respond(request, wanted, (signal) => askSite(request, wanted.url, link, permits, signal));
    link.prepare();
    return askSite(request, wanted.url, link, permits).then((response) => {
      link.carrier?.observe(wanted, response);
      return response;
    });
  });
}

async function askSite(
  request: Request,
  url: string,
  link: Link,
  permits: Permits,
  signal: AbortSignal = request.signal,
): Promise<Response> {
  // The option `signal` alone would reset the policy (Fetch standard, constructor of Request).
  const response = await natives.fetch(request, { signal, referrerPolicy: request.referrerPolicy });
  permits.note(url, natives.responseUrl(response), response);
  const bytes = Number(response.headers.get("content-length") ?? 0);
  link.noteDirect(Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : 0);
  return response;
}

function candidateOf(args: unknown[], link: Link): Candidate | null {
  const [input, init] = args as [RequestInfo | URL, RequestInit | undefined];
  const isRequest = input instanceof natives.Request;
  if (!isRequest && typeof input !== "string" && !(input instanceof URL)) return null;
  const address = isRequest ? input.url : String(input);
  if (mediaUrl(address, document.baseURI) === null) {
    if (isManifestUrl(address, document.baseURI)) link.warm();
    return null;
  }
  let request: Request;
  try {
    // A copy of a Request with a body would take the body away from it.
    if ((isRequest && input.method !== "GET") || (init?.body ?? null) !== null) return null;
    request = new natives.Request(input, init);
  } catch {
    return null;
  }
  const url = mediaUrl(natives.requestUrl(request));
  const carried = carriedHeaders(request.headers, url?.origin === location.origin);
  const cache = CACHE_MODES[request.cache];
  if (url === null || carried === undefined || cache === undefined) return null;
  if (request.signal.aborted || !isPlain(request, init ?? {})) return null;
  url.hash = "";
  return { request, url: url.href, range: carried.range, cache: cache === "default" ? carried.cache : cache };
}

/** What the proxies can do as asked, or what makes no difference to them. */
const CARRIED_OPTIONS = new Set(
  "method headers body mode credentials cache redirect referrer referrerPolicy integrity keepalive signal window".split(
    " ",
  ),
);

function isPlain(request: Request, init: RequestInit): boolean {
  for (const name in init) if (!CARRIED_OPTIONS.has(name) && !isDefault(name, init)) return false;
  return (
    request.method === "GET" &&
    request.mode === "cors" &&
    request.credentials !== "include" &&
    request.redirect === "follow" &&
    request.referrer === "about:client" &&
    (request.referrerPolicy === "" || request.referrerPolicy === "no-referrer") &&
    request.integrity === "" &&
    !request.keepalive
  );
}

function isDefault(name: string, init: object): boolean {
  const value: unknown = init[name as keyof typeof init];
  return value === undefined || (name === "priority" && value === "auto");
}
