/** The public types of the library: the options of a download and its results. This file has no code but constants. */
import {
  TRANSPORTS,
  type ByteRange,
  type CacheMode,
  type Mode,
  type Rejection,
  type ResponseHead,
} from "@tributary/contract";
import type { OUTCOMES, PURPOSES, Voucher } from "@tributary/contract/record-fields";
import type { DownloadRecord, ListedProxy } from "@tributary/contract/schema";

export { MODES, type Mode } from "@tributary/contract";

export type Source = "extension" | "cli" | "library";

/** A proxy as Origo lists it, with its HTTP endpoint and its other addresses. */
export type ProxyInfo = ListedProxy;

export const TRANSPORT_OPTIONS = ["auto", ...TRANSPORTS] as const;
/** The transport of the datagrams. `auto` lets the client choose. Any other value is the only one that is tried. */
export type TransportOption = (typeof TRANSPORT_OPTIONS)[number];

/** What the caller itself fetched from the origin, for the record. */
export interface OwnRest {
  /** Why it did not take this from the proxies. */
  reason: Rejection;
  /** The bytes that the caller had from the proxies before. */
  offset: number;
  bytes: number;
  /** HTTP status of the answer that the caller used; 0 if there was none. */
  status: number;
  /** From the start of the download to the head of the origin's answer. */
  headMs: number;
  outcome: (typeof OUTCOMES)[number];
}

export interface GetOptions {
  /** Default `coded`. */
  mode?: Mode;
  /** Proxies to use at once, 1..32; default 4. Fewer are used when fewer are live. */
  connections?: number;
  /** Both ends inclusive, as in HTTP. */
  range?: ByteRange;
  /** Default `default`: the proxies may answer from their caches as RFC 9111 allows. */
  cache?: CacheMode;
  /**
   * The origin of the web page for which the caller asks, for example `https://page.example`. Proxies name it to the
   * origin as a browser does (Fetch standard, `Origin`), and the answer is for pages of that origin only.
   */
  pageOrigin?: string;
  signal?: AbortSignal;
  /** The download fails as stalled after this many ms without a byte. It can only shorten the waits of the settings. */
  patienceMs?: number;
  /** The longest silence of the origin in a direct download, 100..3,600,000 ms; default 120,000. */
  timeoutMs?: number;
  /**
   * How often in a row a direct download is asked for again without a new byte, 0..100; default 5. The origin's
   * Retry-After is heeded if it is not longer than `timeoutMs`.
   */
  retries?: number;
  /** Headers for the origin. Proxies never get them, so they need mode `direct`. */
  headers?: Readonly<Record<string, string>>;
  /** Remove the content coding (gzip, deflate, br), as browsers always do. Default false: the body as published. */
  decode?: boolean;
  /**
   * Pass on the origin's answer also if it ignores the range (status 200), as a browser does. Default false: the body
   * has the bytes of the range, or the download fails.
   */
  verbatim?: boolean;
  /** A text of the calling program, for example the name of a campaign. It goes into the record unchanged. */
  comment?: string;
  /** A text of the viewer. It goes into the record unchanged. */
  userComment?: string;
  /** The name of the player for the record, for example `hls.js`. */
  player?: string;
  /**
   * Mode `coded`: the proxies read a chunk from its origin together, once, if one operator runs them all. Nobody then
   * confirms what a proxy brings. Default false.
   */
  sharing?: boolean;
  generationSize?: number;
  windowPackets?: number;
  symbolBytes?: number;
  feedbackEveryPackets?: number;
  feedbackEveryMs?: number;
  /**
   * What the client may try if datagrams or proxies fail. `true` (default) allows HTTP through the same proxies, and
   * then a fetch of the rest from the origin. `proxies` allows only HTTP through the proxies. `false` allows nothing.
   * With `true` the client also asks a PeerTube site for the digests of its segments.
   */
  allowFallback?: boolean | "proxies";
  /**
   * Whether the client may ask the site itself for this address, to check what the proxies bring. Without a fallback to
   * the origin the client asks for digests only if this is given. It waits for them only if the site had some before.
   */
  mayAskSite?: (url: string) => Promise<boolean>;
  /** Called when bytes came that are held until their digest is right. */
  onHeld?: () => void;
  /** Default `request`. */
  purpose?: (typeof PURPOSES)[number];
  /**
   * The download is complete only when its body was read to the end. A caller that ends it before, while bytes wait,
   * gets a record that says so. Default false: it is complete when all bytes are there to read.
   */
  recordAfterRead?: boolean;
  /** Undefined if the caller took all from the proxies. The record waits for it. */
  ownRest?: Promise<OwnRest | undefined>;
}

export interface Download {
  /** Rejects if the download ends before the origin's answer is known. */
  readonly head: Promise<ResponseHead>;
  /** Pieces of at most 64 KiB, in order. Each piece has its own buffer. */
  readonly body: ReadableStream<Uint8Array>;
  /**
   * Tells what happened. It always resolves, also for failed and aborted downloads. A body that is taken must be read
   * to its end or cancelled. A body that nobody takes is thrown away after a while.
   */
  readonly record: Promise<DownloadRecord>;
  /**
   * Ends the download. An `Error` other than an AbortError or TimeoutError says what failed at the caller, for example
   * a full disk: the download has then failed. It is aborted for any other reason. Cancelling the body does the same.
   */
  abort(reason?: unknown): void;
}

/** Who signed a published file: the key, and the name of the publication. */
export interface Publisher {
  key: string;
  name: string;
}

/** Who vouched for a download. */
export interface Vouched {
  by: Voucher;
  /** If the publisher did. */
  publisher?: Publisher;
  /** The time since the latest such download ended. */
  ageMs: number;
}

/** Totals of one proxy since the client was made. */
export interface LiveProxy {
  id: string;
  name: string;
  state: "idle" | "connecting" | "open" | "closed";
  bytes: number;
  packets: number;
  innovative: number;
  duplicate: number;
  rttMs: number | null;
  /** How often it was proven to send false bytes. */
  lies: number;
}

/** Totals since the client was made. */
export interface LiveStats {
  proxies: LiveProxy[];
  downloads: number;
  /** Bytes that went to body streams. */
  deliveredBytes: number;
  /** Bytes that came directly from origins, in mode `direct` or as a fallback. */
  directBytes: number;
  fallbacks: number;
  /** No session could be opened a moment ago, so shares go over HTTP. */
  isOverHttp: boolean;
  /** One entry for each voucher and publication. Comparisons do not count. */
  vouched: Vouched[];
}
