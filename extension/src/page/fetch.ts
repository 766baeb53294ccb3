/**
 * Fetch: the page's `fetch`, with the transport in front of it for media requests. A request that the transport cannot
 * repeat exactly (another method, credentials, unusual headers, `no-cors`, integrity) stays with the native function.
 */
import type { CacheMode } from "@tributary/contract";
import type { Carrier, MediaRequest } from "../shared/carry";
import { carriedHeaders, isPublishedUrl, mediaUrl } from "../shared/rules";
import { apply, isA, options, OwnURL, url as part, withoutHash } from "../shared/primordials";
import { headerOf, headersOf, isAborted, requestOf, responseOf } from "../shared/platform";
import { carrierOf, heedManifest } from "./held";
import type { Link } from "./link";
import { natives, page } from "./natives";
import type { Permits } from "./permits";
import { attempt, wrapFunction } from "./wrap";

/** The modes of `fetch` that the proxies can follow. Only the browser itself can answer the others from its cache. */
const CACHE_MODES: Partial<Record<RequestCache, CacheMode>> = options({
  default: "default",
  "no-cache": "no-cache",
  reload: "no-cache",
  "no-store": "no-store",
});

const COUNT_MAX = 2 ** 53 - 1;

interface Candidate extends MediaRequest {
  /** A copy that the browser made. The page may change what it passed while the request waits. */
  request: Request;
}

/** `original`, which is `window.fetch`, with the transport in front of it. */
export function patchFetch(original: Window["fetch"], link: Link, permits: Permits): Window["fetch"] {
  return wrapFunction(original, (target, receiver, args) => {
    const isCallable = receiver === undefined || receiver === null || receiver === window;
    const candidate = link.isNative || !isCallable ? null : candidateOf(args, link);
    if (candidate === null) return apply(target, receiver, args);
    const { request, ...wanted } = candidate;
    const ask = (signal?: AbortSignal): Promise<Response> => askSite(request, wanted.url, link, permits, signal);
    const isPublished = isPublishedUrl(wanted.url);
    const carrier = isPublished || permits.allows(wanted.url) ? link.carrier : null;
    if (carrier !== null) return respond(carrier, request, wanted, ask);
    return isPublished ? hold(request, wanted, link, ask) : askAndShow(wanted, link, ask);
  });
}

type Ask = (signal?: AbortSignal) => Promise<Response>;

/** A page asks for a port once it has got media. A page that plays nothing does not. */
async function askAndShow(wanted: MediaRequest, link: Link, ask: Ask): Promise<Response> {
  const response = await ask();
  attempt(() => link.carrier?.observe(wanted, response));
  return response;
}

async function hold(request: Request, wanted: MediaRequest, link: Link, ask: Ask): Promise<Response> {
  const carrier = await carrierOf(link, requestOf(request).signal);
  return await (carrier === null ? askAndShow(wanted, link, ask) : respond(carrier, request, wanted, ask));
}

/** Functions of the page can make the carrying script fail. The site itself then answers. */
async function respond(carrier: Carrier, request: Request, wanted: MediaRequest, ask: Ask): Promise<Response> {
  let asked: Promise<Response> | undefined;
  const askSite = (signal: AbortSignal): Promise<Response> => (asked = ask(signal));
  try {
    return await carrier.respond(request, wanted, askSite);
  } catch (error) {
    if (isAborted(requestOf(request).signal)) throw error;
    return await (asked ?? ask());
  }
}

async function askSite(
  request: Request,
  url: string,
  link: Link,
  permits: Permits,
  signal = requestOf(request).signal,
): Promise<Response> {
  // The option `signal` alone would reset the policy (Fetch standard, constructor of Request).
  const { referrerPolicy } = requestOf(request);
  const response = await natives.fetch(request, options({ signal, referrerPolicy }));
  const answer = responseOf(response);
  permits.note(url, answer.url, answer);
  const bytes = +(headerOf(answer.headers, "content-length") ?? 0);
  link.noteDirect(bytes % 1 === 0 && bytes >= 0 && bytes <= COUNT_MAX ? bytes : 0);
  return response;
}

function candidateOf(args: unknown[], link: Link): Candidate | null {
  const input = args[0];
  const init = args[1] as Record<string, unknown> | null | undefined;
  const asked = isA(natives.Request, input) ? requestOf(input) : null;
  const address = typeof input === "string" ? input : isA(OwnURL, input) ? part.href(input) : asked?.url;
  if (address === undefined) return null;
  if (mediaUrl(address, page.baseUri()) === null) {
    heedManifest(address, link);
    return null;
  }
  let request: Request;
  try {
    // A copy of a Request with a body would take the body away from it.
    if ((asked !== null && asked.method !== "GET") || (init?.body ?? null) !== null) return null;
    request = new natives.Request(input as RequestInfo, init as RequestInit);
  } catch {
    return null;
  }
  return wantedOf(request, init ?? {});
}

/** What the proxies are to be asked for; null if they cannot do as asked. */
function wantedOf(request: Request, init: Record<string, unknown>): Candidate | null {
  const asked = requestOf(request);
  const url = mediaUrl(asked.url);
  if (url === null || isAborted(asked.signal) || !isPlain(asked, init)) return null;
  const carried = carriedHeaders(headersOf(asked.headers), part.origin(url) === location.origin);
  const cache = CACHE_MODES[asked.cache];
  if (carried === undefined || cache === undefined) return null;
  return { request, url: withoutHash(url), range: carried.range, cache: cache === "default" ? carried.cache : cache };
}

function isPlain(asked: ReturnType<typeof requestOf>, init: Record<string, unknown>): boolean {
  // eslint-disable-next-line tributary/primordials -- The browser, too, reads what the page's object inherits.
  for (const name in init) if (!(name in asked) && !isHarmless(name, init[name])) return false;
  return (
    asked.method === "GET" &&
    asked.mode === "cors" &&
    asked.credentials !== "include" &&
    asked.redirect === "follow" &&
    asked.referrer === "about:client" &&
    (asked.referrerPolicy === "" || asked.referrerPolicy === "no-referrer") &&
    asked.integrity === "" &&
    !asked.keepalive
  );
}

/** An option that is no member of `Request` and makes no difference. */
function isHarmless(name: string, value: unknown): boolean {
  return value === undefined || name === "body" || name === "window" || (name === "priority" && value === "auto");
}
