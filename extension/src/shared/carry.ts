/**
 * Carry: the types that the page script and the carrying script share. The carrying script enters a page when the page
 * first needs it. Neither script contains the other's code.
 */
import type { ByteRange, CacheMode } from "@tributary/contract";
import type { Fetched, PageResponseHead, SiteHead, ToPage } from "./messages";
import type { Read } from "./late-platform";

/** What a page asks for and the transport may carry. */
export interface MediaRequest {
  url: string;
  range: ByteRange | null;
  /** How the page wants caches to be used. */
  cache: CacheMode;
}

/** `bytes` of the body reached the page. */
export type SiteEnd = Pick<Fetched, "bytes" | "outcome">;

/** A body that is read piece by piece. */
export interface SiteBody {
  read: Read;
  /** No more of it is wanted. */
  stop(): void;
}

/** One request of the browser to the site itself, as the page would make it without the extension. */
export interface SiteRequest {
  /** Rejects if the browser gets no answer. */
  readonly head: Promise<SiteHead>;
  /** Resolves when the body has ended, also if it failed or was aborted. */
  readonly end: Promise<SiteEnd>;
  /** A copy of the body, for a comparison. Called at most once, when the head is known. */
  copy(): SiteBody;
  abort(): void;
}

/**
 * The events are either `native`, or `head`, then `bytes` in order, then `end` or `error`. `error` may come without a
 * head. All come after `carry` has
 * returned.
 */
export interface CarriedRequestEvents<Site extends SiteRequest = SiteRequest> {
  /** Asks the site. It is called again only after the request before was aborted. */
  askSite(): Site;
  /** `site` serves the page: its answer, or its failure, is the page's. */
  native(site: Site): void;
  head(head: PageResponseHead): void;
  bytes(bytes: Uint8Array<ArrayBuffer>): void;
  end(): void;
  /** The body cannot be finished, for example after a network error. */
  error(): void;
}

/** The caller's hold on a carried request. */
export interface RequestHandle {
  /** The caller has taken all the bytes that it has received so far. */
  credit(): void;
  /** Ends the request, and the request to the site. No event follows. */
  abort(): void;
  /** The site serves the page in place of the proxies, because only the browser can give what the page wants. */
  useSite(): void;
}

/** What the page told an XMLHttpRequest in `open` and after it. */
export interface XhrAsk {
  /** As the page wrote it. */
  address: string;
  headers: [string, string][];
  mime: string | undefined;
}

/** An XMLHttpRequest of the page that the transport may answer. */
export interface PageXhr {
  xhr: XMLHttpRequest;
  asked: XhrAsk;
  sendNatively(copy: XMLHttpRequest): void;
}

/** A method or property of an XMLHttpRequest that its state may forbid. */
export type StateRule = "send" | "setRequestHeader" | "withCredentials" | "responseType" | "overrideMimeType";

/** What answers in place of a native XMLHttpRequest, from `send` until the page opens the object again. */
export interface XhrEmulation {
  send(): void;
  /** The page calls the method `name`, or reads or sets the property. `target` is the browser's own function for it. */
  answer(name: string, target: (...args: never[]) => unknown, args: unknown[]): unknown;
  /** Ends without another event. True if the page must hear that the object is open again. */
  forget(): boolean;
}

/** The carrying script's service to the page script. */
export interface Carrier {
  carry<Site extends SiteRequest>(request: MediaRequest, events: CarriedRequestEvents<Site>): RequestHandle;
  /** Answers the page's `fetch` of `request`, carried as `wanted`. `fetchNatively` asks the site itself. */
  respond(
    request: Request,
    wanted: MediaRequest,
    fetchNatively: (signal: AbortSignal) => Promise<Response>,
  ): Promise<Response>;
  emulate(page: PageXhr, wanted: MediaRequest): XhrEmulation;
  /** The browser answered `wanted` itself: the answer may show whether the proxies get the same. */
  observe(wanted: MediaRequest, response: Response): void;
  /** The same for a native object that is about to be sent. The result is called before the page gets the response. */
  observeXhr(wanted: MediaRequest, xhr: XMLHttpRequest): (response: unknown) => void;
  /** A message of the transport. */
  handle(message: ToPage): void;
  /** The connection to the transport is closed. */
  lost(): void;
}
