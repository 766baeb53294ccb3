/**
 * Fetch: the page's `fetch`, with the transport in front of it for media requests. A request that the transport cannot
 * repeat exactly (another method, credentials, unusual headers, `no-cors`, integrity) stays with the native function.
 */
import type { CacheMode } from "@tributary/contract";
import type { MediaRequest } from "../shared/carry";
import { carriedHeaders, isManifestUrl, mediaUrl } from "../shared/rules";
import type { Link } from "./link";
import { natives, wrapFunction } from "./natives";

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
export function patchFetch(link: Link): typeof fetch {
  return wrapFunction(window.fetch, (target, receiver, args) => {
    const candidate = link.isNative ? null : candidateOf(args, link);
    if (candidate === null) return Reflect.apply(target, receiver, args);
    return carry(candidate, link);
  });
}

async function carry({ request, ...wanted }: Candidate, link: Link): Promise<Response> {
  const carrier = await link.ready();
  return carrier === null || request.signal.aborted ? natives.fetch(request) : carrier.respond(request, wanted);
}

function candidateOf(args: unknown[], link: Link): Candidate | null {
  const [input, init] = args as [RequestInfo | URL, RequestInit | undefined];
  const isRequest = input instanceof natives.Request;
  if (!isRequest && typeof input !== "string" && !(input instanceof URL)) return null;
  const address = isRequest ? input.url : String(input);
  const url = mediaUrl(address, document.baseURI);
  if (url === null) {
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
  const carried = carriedHeaders(request.headers, url.origin === location.origin);
  const cache = CACHE_MODES[request.cache];
  if (carried === undefined || cache === undefined || request.signal.aborted || !isPlain(request, url)) return null;
  url.hash = "";
  return { request, url: url.href, range: carried.range, cache: cache === "default" ? carried.cache : cache };
}

function isPlain(request: Request, url: URL): boolean {
  const isReadable = request.mode === "cors" || (request.mode === "same-origin" && url.origin === location.origin);
  return (
    request.method === "GET" &&
    isReadable &&
    request.credentials !== "include" &&
    request.redirect === "follow" &&
    request.integrity === "" &&
    !request.keepalive
  );
}
